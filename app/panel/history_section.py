"""The history of the chat in the panel: answer by answer, within the answer shown, and to take away."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.answers_plot import AnswersPlot
from app.panel.feed import Shown, Which
from app.panel.history import ChatFigures
from app.panel.pace_plot import PacePlot
from app.widgets.buttons import push_button
from app.widgets.labels import hint
from engine.pace import Pace


class HistorySection(QWidget):
    """`chosen` brings the index of an answer or None; the other signals ask for a file."""

    chosen = Signal(object)
    table_wanted = Signal()
    picture_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sentence = hint()
        self.answers = AnswersPlot()
        self.pace = PacePlot()
        self.keys = hint(tr("Arrow keys or a click choose an answer, Escape returns to the present one."))
        self.table_button = push_button(tr("Save as table (CSV)…"), self.table_wanted.emit)
        self.picture_button = push_button(tr("Save panel as picture…"), self.picture_wanted.emit)
        self.answers.chosen.connect(self.chosen)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        parts = (self.sentence, self.answers, self.keys, self.pace, self.table_button, self.picture_button)
        for widget in parts:
            column.addWidget(widget)
        self.show_history(ChatFigures(), Shown())

    def show_history(self, chat: ChatFigures, shown: Shown) -> None:
        """Show a chat's answers, and the pace of the one that is shown."""
        several = len(chat.answers) > 1
        self.sentence.setText(chat.describe())
        self.answers.show_rates(chat.rates(), shown.index, fixed=shown.which is Which.CHOSEN)
        for widget in (self.answers, self.keys):
            if widget.isHidden() is several:
                widget.setVisible(several)
        stats = shown.stats
        self.pace.show_pace(stats.pace if stats else Pace(), stats.tokens_per_second if stats else 0.0)
        self.table_button.setEnabled(bool(chat.answers))
