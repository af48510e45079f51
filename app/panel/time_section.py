"""Where the time of an answer went: a sentence, a bar, its legend, and what would help."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.bars import Ink
from app.panel.legend import Entry, LegendBar
from app.panel.time_parts import TimePart, largest, time_parts, what_helps
from app.theme import mark
from engine.accounting import Part, TimeSplit

_INKS = {
    Part.CPU_EXPERTS: Ink("cpu", Qt.BrushStyle.Dense4Pattern),
    Part.COPIES: Ink("streamed", Qt.BrushStyle.BDiagPattern),
    Part.GPU_EXPERTS: Ink("gpu"),
    Part.ATTENTION: Ink("link", Qt.BrushStyle.CrossPattern),
    Part.ROUTER_SYNC: Ink("split", Qt.BrushStyle.VerPattern),
    Part.WAITING: Ink("muted", Qt.BrushStyle.FDiagPattern),
    Part.LAUNCH: Ink("warning", Qt.BrushStyle.HorPattern),
    Part.PYTHON: Ink("text", Qt.BrushStyle.DiagCrossPattern),
}


class TimeSection(QWidget):
    """Shows a `TimeSplit`; before there is one, a line that says so."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sentence, self.hint = QLabel(), QLabel()
        self.chart = LegendBar()
        mark(self.hint, muted=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for label in (self.sentence, self.hint):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        for widget in (self.sentence, self.chart, self.hint):
            column.addWidget(widget)
        self.show_split(TimeSplit())

    def show_split(self, split: TimeSplit, *, ended: bool = False) -> None:
        """Show where the time of the tokens so far went; `ended`: those are all of an answer's."""
        parts = time_parts(split)
        nothing = (
            tr("Not measured for this answer.") if ended else tr("Known after the first words of an answer.")
        )
        self.sentence.setText(largest(parts) or nothing)
        mark_muted = not parts
        if bool(self.sentence.property("muted")) is not mark_muted:
            mark(self.sentence, muted=mark_muted)
        self.chart.setVisible(bool(parts))
        self.chart.set_entries([_entry(part) for part in parts])
        self.hint.setText(_hint(parts, split))
        self.hint.setVisible(bool(parts))


def _entry(part: TimePart) -> Entry:
    return Entry(part.name, part.fraction, part.percent, part.figures, _INKS[part.part])


def _hint(parts: tuple[TimePart, ...], split: TimeSplit) -> str:
    """What would help, and what the milliseconds are of."""
    about = tr("The times are those of an average token; reading the prompt is not counted.")
    return f"{what_helps(parts)} {about}".strip()
