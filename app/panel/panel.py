"""The live panel: speed, where the time goes, experts, the machine, the history. Hidden, it does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QImage, QShowEvent
from PySide6.QtWidgets import QLabel, QScrollArea, QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.experts_section import ExpertsSection
from app.panel.feed import Feed, Which
from app.panel.figures import ExpertGrid, shares
from app.panel.forecast_section import ForecastSection
from app.panel.history import together
from app.panel.history_section import HistorySection
from app.panel.machine import MachineReader, MachineReading
from app.panel.machine_section import MachineSection
from app.panel.sampler import Sampler
from app.panel.saving import PanelFiles
from app.panel.share_section import ShareSection
from app.panel.speed_section import SpeedSection
from app.panel.time_section import TimeSection
from app.storage.rows import MessageRow
from app.theme import heading, mark
from app.widgets.frames import separator
from app.widgets.screen_share import rest_of_screen
from engine.accounting import TimeSplit
from engine.events import ExpertHits, GenerationStats
from engine.status import EngineStatus

CALM_MS = 250  # figures that change more often cannot be read
_LEAST_LINES = 14  # the least width in heights of a line: names of parts take two lines, seldom three


class _WindowState(QObject):
    """Tells when the window is minimised or comes back: minimised, it is as good as hidden.

    An object of its own, because a scroll area's event filter hears of everything that its content does.
    """

    changed = Signal()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hear of the window's state; nothing is kept from it."""
        if event.type() is QEvent.Type.WindowStateChange:
            self.changed.emit()
        return False


class LivePanel(QScrollArea):
    """Shows the figures of engine and chat, which come by the `show_…` methods and `end_answer`."""

    def __init__(
        self, parent: QWidget | None = None, read: Callable[[int | None], MachineReading] | None = None
    ) -> None:
        super().__init__(parent)
        self._status: EngineStatus | None = None
        self._watched = False
        self._pending = False  # something changed since the last refresh
        self._feed = Feed(self)
        self._sampler = Sampler(read or MachineReader(), self)
        self._files = PanelFiles(self)
        self._minimised = _WindowState(self)
        self._minimised.changed.connect(self._watch)
        self._calm = QTimer(self)
        self._calm.setSingleShot(True)
        self._calm.setInterval(CALM_MS)
        self._calm.timeout.connect(self._on_calm)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(tr("Live panel"))
        mark(self, surface=True)
        self.speed = SpeedSection()
        self.time = TimeSection()
        self.shares = ShareSection()
        self.forecast = ForecastSection()
        self.experts = ExpertsSection()
        self.machine = MachineSection()
        self.history = HistorySection()
        self._content = self._lay_out()
        self.setWidget(self._content)
        self._feed.changed.connect(self._on_changed)
        self._sampler.sampled.connect(self.machine.show_reading)
        self.history.chosen.connect(self._feed.choose)
        self.history.table_wanted.connect(lambda: self._files.ask_table(self._feed.chat))
        self.history.picture_wanted.connect(lambda: self._files.ask_picture(self.picture()))

    def show_status(self, status: EngineStatus | None) -> None:
        """A model was loaded, changed, or closed (None)."""
        other = status is None or self._status is None or status.model_name != self._status.model_name
        self._status = status
        self._sampler.gpu_index = None if status is None else status.gpu_index
        if other:
            self._feed.show_running(None)
        self._refresh()

    def show_chat(self, chat_id: int | None, rows: Sequence[MessageRow]) -> None:
        """Another chat is shown, or the same with other answers."""
        self._feed.show_chat(chat_id, rows)

    def show_stats(self, stats: GenerationStats | None) -> None:
        """New figures of the answer under way; None when there is none."""
        self._feed.show_running(stats)

    def end_answer(self, row: MessageRow) -> None:
        """The answer under way has ended."""
        self._feed.end_answer(row)

    def picture(self) -> QImage:
        """All of the panel, also what is scrolled away."""
        return self._content.grab().toImage()

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the figures beside the scroll bar, where the screen has room for that."""
        bar = self.verticalScrollBar().sizeHint().width()
        width = max(self._content.minimumSizeHint().width(), self.fontMetrics().height() * _LEAST_LINES)
        return QSize(rest_of_screen(self, width + bar, 0.35), super().minimumSizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up, and look at the machine from now on."""
        super().showEvent(event)
        self.window().installEventFilter(self._minimised)
        self._watch()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop looking."""
        super().hideEvent(event)
        self._watch()

    def _watch(self) -> None:
        watched = self.isVisible() and not self.window().isMinimized()
        if watched is self._watched:
            return
        self._watched = watched
        self._feed.watch(watched)
        if watched:
            self._sampler.start()
            self._refresh()
        else:
            self._sampler.stop()
            self._calm.stop()

    def _on_changed(self) -> None:
        """Refresh, but while an answer is written only every quarter of a second."""
        if self._feed.running is None:
            self._calm.stop()
            self._refresh()
        elif self._calm.isActive():
            self._pending = True
        else:
            self._refresh()
            self._calm.start()

    def _on_calm(self) -> None:
        if self._pending:
            self._refresh()
            self._calm.start()

    def _refresh(self) -> None:
        if not self._watched:
            return
        self._pending = False
        feed, status = self._feed, self._status
        chat, shown = feed.chat, feed.shown()
        stats = shown.stats
        self.speed.show_answer(shown, chat)
        self.speed.show_context(shown, status)
        ended = shown.which in (Which.LAST, Which.CHOSEN)
        self.time.show_split(stats.time if stats else TimeSplit(), ended=ended)
        ran = shares(stats.hits if stats else ExpertHits.zeros(0, 0))
        self.shares.show_shares(ran, has_gpu=status is not None and status.has_gpu)
        self.forecast.show_forecast(stats)
        hits = ExpertHits.zeros(0, 0) if status is None else chat.hits_of(status.model_name)
        if feed.running is not None:
            hits = together(hits, feed.running.hits)
        self.experts.show_experts(ExpertGrid.of(status, hits), status)
        self.machine.show_status(status)
        self.history.show_history(chat, shown)

    def _lay_out(self) -> QWidget:
        content = QWidget()
        mark(content, surface=True)
        content.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(content)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(10)
        column.addWidget(self.speed)
        sections = {
            tr("Where the time goes"): self.time,
            tr("Where experts ran"): self.shares,
            tr("Experts"): self.experts,
            tr("Plan and reality"): self.forecast,
            tr("This computer"): self.machine,
            tr("History of this chat"): self.history,
        }
        for title, section in sections.items():
            column.addSpacing(4)
            column.addWidget(separator())
            column.addSpacing(2)
            column.addWidget(heading(QLabel(title), 1.05))
            column.addWidget(section)
        column.addStretch(1)
        return content
