"""A stacked bar with its legend: swatch, name and figures of each part in a row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.bars import Ink, Part, StackedBar, Swatch
from app.widgets.folding import FoldingLayout

_NAME_CHARACTERS = 16  # that a name has beside its figures; in a narrower panel these are below it


@dataclass(frozen=True)
class Entry:
    """A part and its line in the legend: `percent` stands in the bar where it fits, `figures` in the line."""

    name: str
    fraction: float
    percent: str
    figures: str
    ink: Ink


class _Row(NamedTuple):
    swatch: Swatch
    words: QWidget  # the name and the figures
    name: QLabel
    figures: QLabel


class LegendBar(QWidget):
    """Shows entries; rows are made once and reused, and those that are not needed hide."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = StackedBar(tall=True)
        self._rows: list[_Row] = []
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
        return [row.figures.text() for row in self._rows if not row.words.isHidden()]

    def set_entries(self, entries: Sequence[Entry]) -> None:
        """Show other entries."""
        while len(self._rows) < len(entries):
            self._add_row()
        for index, row in enumerate(self._rows):
            shown = index < len(entries)
            for widget in (row.swatch, row.words):
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
        words = QWidget()
        row = _Row(Swatch(Ink("muted")), words, QLabel(words), QLabel(words))
        layout = FoldingLayout(words, least=_NAME_CHARACTERS, top=True)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        row.name.setWordWrap(True)
        for label in (row.name, row.figures):
            label.setTextFormat(Qt.TextFormat.PlainText)
            layout.addWidget(label)
        number = len(self._rows)
        self._legend.addWidget(row.swatch, number, 0, Qt.AlignmentFlag.AlignTop)
        self._legend.addWidget(words, number, 1)
        self._rows.append(row)

    @staticmethod
    def _fill_row(row: _Row, entry: Entry) -> None:
        row.swatch.set_parts([Part(1.0, entry.ink)])
        row.name.setText(entry.name)
        row.figures.setText(entry.figures)
