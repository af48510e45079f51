"""Short work that may wait for a disk or a driver, away from the GUI thread (detecting, planning)."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar, cast

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, Signal, Slot
from shiboken6 import isValid

from app.errors import UnexpectedError
from engine.errors import EngineError

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class _Letter:
    """One answer on its way. Plain Python: a thread of the pool may be the last to let go of it."""

    def __init__(self, to: Background[Any]) -> None:
        self._to = weakref.ref(to)
        self.result: object = None
        self.problem: EngineError | None = None

    def deliver(self) -> None:
        """In the GUI thread; the asker may be gone by then."""
        to = self._to()
        if to is not None and isValid(to):
            to._receive(self)


class _Post(QObject):
    """Brings letters into the GUI thread.

    Lives as long as the program. An object of Qt that each request had for itself could be destroyed by the
    pool's thread, while the GUI's is busy with it.
    """

    _sent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._sent.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def send(self, letter: _Letter) -> None:
        """From any thread."""
        self._sent.emit(letter)

    @Slot(object)
    def _deliver(self, letter: _Letter) -> None:
        letter.deliver()


@cache
def _post() -> _Post:
    return _Post()


class _Runnable(QRunnable):
    def __init__(self, title: str, work: Callable[[], object], letter: _Letter, post: _Post) -> None:
        super().__init__()
        self._title, self._letter, self._post = title, letter, post
        self._work: Callable[[], object] | None = work

    def run(self) -> None:
        """In the pool's thread; nothing that happens leaves this method."""
        letter, work = self._letter, self._work
        assert work is not None
        try:
            letter.result = work()
        except EngineError as error:
            letter.problem = error
        except Exception as error:  # the thread's boundary: a fault must not end the program
            log.exception("%s ended with an unexpected error", self._title)
            letter.problem = UnexpectedError(self._title, error)
        work = self._work = None  # what it refers to belongs to the GUI thread, which still has it
        self._post.send(letter)


class Background(QObject, Generic[Result]):
    """Runs one function at a time and answers in the GUI thread; only the latest request is answered.

    `title` is the work as the subject of a sentence, for the message if the program itself is at fault.
    """

    def __init__(self, title: str, parent: QObject) -> None:
        super().__init__(parent)
        self._title = title
        self._post = _post()  # made here, in the GUI thread
        self._letter: _Letter | None = None
        self._on_done: Callable[[Result], None] | None = None
        self._on_failed: Callable[[EngineError], None] | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._letter is not None

    def run(
        self,
        work: Callable[[], Result],
        on_done: Callable[[Result], None],
        on_failed: Callable[[EngineError], None],
    ) -> None:
        """Start `work` in another thread; an earlier request that still runs will not be answered."""
        self._on_done, self._on_failed = on_done, on_failed
        self._letter = _Letter(self)
        QThreadPool.globalInstance().start(_Runnable(self._title, work, self._letter, self._post))

    def forget(self) -> None:
        """No answer is wanted any more."""
        self._letter = None

    def _receive(self, letter: _Letter) -> None:
        if letter is not self._letter:
            return  # was under way when it was forgotten
        self._letter = None
        if letter.problem is not None:
            assert self._on_failed is not None
            self._on_failed(letter.problem)
        else:
            assert self._on_done is not None
            self._on_done(cast(Result, letter.result))
