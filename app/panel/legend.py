"""A stacked bar with its legend: swatch, name and figures of each part in a row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.bars import Ink, Part, StackedBar, Swatch


@dataclass(frozen=True)
class Entry:
    """A part and its line in the legend: `percent` stands in the bar where it fits, `figures` in the line."""

    name: str
    fraction: float
    percent: str
    figures: str
    ink: Ink


class LegendBar(QWidget):
    """Shows entries; rows are made once and reused, and those that are not needed hide."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = StackedBar(tall=True)
        self._rows: list[tuple[Swatch, QLabel, QLabel]] = []
        self._legend = QGridLayout()
        self._legend.setHorizontalSpacing(8)
        self._legend.setVerticalSpacing(3)
        self._legend.setColumnStretch(1, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.bar)
        column.addLayout(self._legend)

    @property
    def texts(self) -> list[str]:
        """The figures of the legend's visible rows."""
        return [figures.text() for _, _, figures in self._rows if not figures.isHidden()]

    def set_entries(self, entries: Sequence[Entry]) -> None:
        """Show other entries."""
        while len(self._rows) < len(entries):
            self._add_row()
        for index, row in enumerate(self._rows):
            shown = index < len(entries)
            for widget in row:
                if widget.isHidden() is shown:
                    widget.setVisible(shown)
            if shown:
                self._fill_row(row, entries[index])
        self.bar.set_parts(
            [Part(each.fraction, each.ink, each.percent, f"{each.name}: {each.figures}") for each in entries]
        )
        words = [tr("{name}: {figures}", name=each.name, figures=each.figures) for each in entries]
        self.bar.setAccessibleName(", ".join(words))

    def _add_row(self) -> None:
        row = (Swatch(Ink("muted")), QLabel(), QLabel())
        number = len(self._rows)
        top = Qt.AlignmentFlag.AlignTop
        self._legend.addWidget(row[0], number, 0, top)
        self._legend.addWidget(row[1], number, 1)
        self._legend.addWidget(row[2], number, 2, top | Qt.AlignmentFlag.AlignRight)
        row[1].setWordWrap(True)  # a long name takes two lines on a narrow panel
        for label in row[1:]:
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._rows.append(row)

    @staticmethod
    def _fill_row(row: tuple[Swatch, QLabel, QLabel], entry: Entry) -> None:
        row[0].set_parts([Part(1.0, entry.ink)])
        row[1].setText(entry.name)
        row[2].setText(entry.figures)
