"""Which answer the panel shows, and its speed and times: prompt and answer apart."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import tr
from app.moments import short_moment
from app.panel.bars import Ink, Part
from app.panel.feed import Shown, Which
from app.panel.figures import DASH, speed
from app.panel.history import ChatFigures
from app.panel.meter import Meter
from app.theme import heading, mark
from engine.status import EngineStatus


class SpeedSection(QWidget):
    """A large figure for the speed, rows for the rest, and how full the context is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.which = QLabel()
        self.now = heading(QLabel(), 2.0)
        self.unit = QLabel()
        self.rows: dict[str, QLabel] = {}
        self._names = {
            "average": tr("Average"),
            "first_token": tr("First token"),
            "prompt": tr("Prompt"),
            "answer": tr("Answer"),
        }
        self.context = Meter(tr("Context"))
        for label in (self.which, self.unit):
            mark(label, muted=True)
            label.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        for widget in (self.which, self.now, self.unit):
            column.addWidget(widget)
        column.addLayout(self._grid())
        column.addWidget(self.context)

    def show_answer(self, shown: Shown, chat: ChatFigures) -> None:
        """Show the figures of an answer."""
        figures = speed(shown.stats)
        running = shown.which in (Which.RUNNING, Which.NONE)
        self.which.setText(_which(shown, chat))
        self.now.setText(figures.now if running else figures.average)
        self.unit.setText(tr("tokens per second now") if running else tr("tokens per second on average"))
        for key, label in self.rows.items():
            label.setText(getattr(figures, key))
            label.setAccessibleName(f"{self._names[key]}: {label.text()}")

    def show_context(self, shown: Shown, status: EngineStatus | None) -> None:
        """How much of the context an answer used, or what the model has."""
        stats = shown.stats
        length = stats.context_length if stats else status.context_length if status else 0
        used = stats.context_used if stats else 0  # what the engine remembers is of another chat
        if not length:
            self.context.show_amount(DASH, [])
            return
        text = tr("{used} of {length} tokens", used=f"{used:,}", length=f"{length:,}")
        self.context.show_amount(text, [Part(min(1.0, used / length), Ink("accent"))])

    def _grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        for row, (key, name) in enumerate(self._names.items()):
            label, value = QLabel(name), QLabel()
            mark(label, muted=True)
            value.setWordWrap(True)
            value.setTextFormat(Qt.TextFormat.PlainText)
            self.rows[key] = value
            grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, row, 1)
        return grid


def _which(shown: Shown, chat: ChatFigures) -> str:
    if shown.which is Which.RUNNING:
        return tr("The answer being written")
    if shown.which is Which.LAST:
        return tr("The last answer")
    if shown.which is Which.CHOSEN and shown.index is not None:
        return tr(
            "Answer {n} of {all}, {date}",
            n=shown.index + 1,
            all=len(chat.answers),
            date=short_moment(chat.answers[shown.index].at),
        )
    return tr("No answer yet")
