"""Watches the worker and tasks for long work: tells when it ends unseen, and keeps awake meanwhile."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal, Slot

from app.desktop.awake import Awake
from app.desktop.long_work import (
    AWAKE_AFTER_MS,
    CALIBRATE,
    GENERATE,
    LOAD,
    Ended,
    is_worth_telling,
    keeps_awake,
    words,
)
from app.i18n import tr
from app.settings import SettingsStore, registry
from app.widgets.running import running_tasks
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.events import Finished, FinishReason


class Notices(Protocol):
    """Shows notices of the desktop."""

    def show(self, text: str) -> None:
        """Show one; never blocks, never fails."""


class Desk(Protocol):
    """What the program knows of the desktop around it."""

    def is_watched(self) -> bool:
        """Whether a window of the program is in front."""

    def alert(self) -> None:
        """Mark the window in the task bar."""


class WorkWatch(QObject):
    """`ended` comes with every piece of work that was not cancelled."""

    ended = Signal(object)  # Ended

    def __init__(self, worker: EngineWorker, parent: QObject) -> None:
        super().__init__(parent)
        self._worker = worker
        self._since = QElapsedTimer()
        self._since.start()
        worker.idle_changed.connect(self._on_idle)
        worker.finished.connect(self._on_finished)
        worker.calibrated.connect(lambda _: self._tell(CALIBRATE))
        worker.loaded.connect(lambda *_: self._tell(LOAD))
        worker.model_ready.connect(lambda _: self._tell(worker.operation))
        worker.failed.connect(self._on_failed)
        worker.cancelled.connect(lambda _: self._since.restart())
        running_tasks().ended.connect(self._on_task_ended)

    def _tell(self, operation: str, *, succeeded: bool = True) -> None:
        seconds = self._since.restart() / 1000
        self.ended.emit(Ended(operation, seconds, succeeded))

    @Slot(bool)
    def _on_idle(self, idle: bool) -> None:
        if not idle:
            self._since.restart()

    @Slot(str, float, bool)
    def _on_task_ended(self, kind: str, seconds: float, succeeded: bool) -> None:
        self.ended.emit(Ended(kind, seconds, succeeded))

    @Slot(int, object)
    def _on_finished(self, _request: int, finished: Finished) -> None:
        if finished.reason is FinishReason.CANCELLED:
            self._since.restart()
        else:
            self._tell(GENERATE)

    @Slot(str, object)
    def _on_failed(self, operation: str, _error: EngineError) -> None:
        self._tell(operation, succeeded=False)


class Teller(QObject):
    """Shows a notice when long work ends while no window of the program is in front."""

    def __init__(self, watch: WorkWatch, notices: Notices, settings: SettingsStore, desk: Desk) -> None:
        super().__init__(watch)
        self._notices, self._settings, self._desk = notices, settings, desk
        watch.ended.connect(self._on_ended)

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        wanted = self._settings.get(registry.NOTIFY)
        if is_worth_telling(ended, watched=self._desk.is_watched(), wanted=wanted):
            self._desk.alert()
            self._notices.show(words(ended))


class SleepGuard(QObject):
    """Holds the computer awake while the worker or a task is at long work, until its end or the exit."""

    def __init__(
        self,
        worker: EngineWorker,
        awake: Awake,
        settings: SettingsStore,
        parent: QObject,
        after_ms: int = AWAKE_AFTER_MS,
    ) -> None:
        super().__init__(parent)
        self._worker, self._awake, self._settings = worker, awake, settings
        self._holding = False
        self._timer = QTimer(self, interval=after_ms)
        self._timer.timeout.connect(self._look)
        worker.idle_changed.connect(self._on_change)
        running_tasks().changed.connect(self._on_change)
        self._unsubscribe = settings.subscribe(self._on_setting)

    def end(self) -> None:
        """The program ends: let go for good."""
        self._unsubscribe()
        running_tasks().changed.disconnect(self._on_change)
        self._timer.stop()
        self._let_go()

    @property
    def _works(self) -> list[str]:
        """What is done now."""
        own = [] if self._worker.idle else [self._worker.operation]
        return [*own, *running_tasks().kinds]

    @Slot()
    def _on_change(self) -> None:
        if not self._works:
            self._timer.stop()
            self._let_go()
        elif not self._holding and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _look(self) -> None:
        wanted = self._settings.get(registry.KEEP_AWAKE)
        if any(keeps_awake(work, wanted=wanted) for work in self._works):
            self._timer.stop()
            self._holding = True
            self._awake.hold(tr("Fiddler Chat is working"))

    def _let_go(self) -> None:
        if self._holding:
            self._holding = False
            self._awake.release()

    def _on_setting(self, key: str, wanted: object) -> None:
        if key == registry.KEEP_AWAKE.key:
            if not wanted:
                self._let_go()
            else:
                self._on_change()
