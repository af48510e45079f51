"""Short work that may wait for a disk or a driver, away from the GUI thread (detecting, planning)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, Signal, Slot

from app.errors import UnexpectedError
from engine.errors import EngineError

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class _Bridge(QObject):
    """Carries one answer over; both threads keep it, so that the asker may be gone by then."""

    ended = Signal(int, object, object)  # number of the request, result, EngineError or None


class _Runnable(QRunnable):
    def __init__(self, title: str, work: Callable[[], object], number: int, bridge: _Bridge) -> None:
        super().__init__()
        self._title, self._work, self._number, self._bridge = title, work, number, bridge

    def run(self) -> None:
        """In the pool's thread; nothing that happens leaves this method."""
        result: object = None
        problem: EngineError | None = None
        try:
            result = self._work()
        except EngineError as error:
            problem = error
        except Exception as error:  # the thread's boundary: a fault must not end the program
            log.exception("%s ended with an unexpected error", self._title)
            problem = UnexpectedError(self._title, error)
        self._bridge.ended.emit(self._number, result, problem)


class Background(QObject, Generic[Result]):
    """Runs one function at a time and answers in the GUI thread; only the latest request is answered.

    `title` is the work as the subject of a sentence, for the message if the program itself is at fault.
    """

    def __init__(self, title: str, parent: QObject) -> None:
        super().__init__(parent)
        self._title = title
        self._number = 0
        self._bridge: _Bridge | None = None
        self._on_done: Callable[[Result], None] | None = None
        self._on_failed: Callable[[EngineError], None] | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._bridge is not None

    def run(
        self,
        work: Callable[[], Result],
        on_done: Callable[[Result], None],
        on_failed: Callable[[EngineError], None],
    ) -> None:
        """Start `work` in another thread; an earlier request that still runs will not be answered."""
        self.forget()
        self._on_done, self._on_failed = on_done, on_failed
        self._bridge = _Bridge()
        self._bridge.ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)
        QThreadPool.globalInstance().start(_Runnable(self._title, work, self._number, self._bridge))

    def forget(self) -> None:
        """No answer is wanted any more."""
        self._number += 1
        if self._bridge is not None:
            self._bridge.ended.disconnect(self._on_ended)
            self._bridge = None

    @Slot(int, object, object)
    def _on_ended(self, number: int, result: Result, problem: EngineError | None) -> None:
        if number != self._number:
            return  # was under way when it was forgotten
        self._bridge = None
        if problem is not None:
            assert self._on_failed is not None
            self._on_failed(problem)
        else:
            assert self._on_done is not None
            self._on_done(result)
