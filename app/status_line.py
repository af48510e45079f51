"""The line at the foot of the window: what the model runs on, and how fast it is."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QStatusBar

from app.chat.notices import describe
from app.i18n import tr
from app.model_control import where_it_runs
from app.theme import mark
from app.widgets.elided import ElidedText
from engine.events import GenerationStats
from engine.status import EngineStatus


class StatusLine:
    """Fills a window's status bar."""

    def __init__(self, bar: QStatusBar) -> None:
        self._chat: int | None = None
        self.model = ElidedText()
        self.speed = QLabel()
        for label in (self.model, self.speed):
            mark(label, muted=True)
        bar.setSizeGripEnabled(False)
        bar.setContentsMargins(12, 2, 12, 2)
        bar.addWidget(self.model, 1)
        bar.addPermanentWidget(self.speed)

    def show_model(self, status: EngineStatus | None) -> None:
        """The model that is loaded; None: there is none."""
        self.model.setText(where_it_runs(status) if status else tr("No model is loaded"))
        if status is not None and status.notes:
            self.model.setToolTip("\n".join(status.notes))

    def show_chat(self, chat_id: int | None) -> None:
        """The chat that is on the screen: figures of another one's answer go."""
        if chat_id != self._chat:
            self._chat = chat_id
            self.speed.clear()

    def show_stats(self, stats: GenerationStats) -> None:
        """The figures of the answer under way."""
        self.speed.setText(describe(stats))
