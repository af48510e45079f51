"""One piece of work for another thread, from the GUI thread and back to it.

Python destroys an object in whichever thread lets go of it last, and an object of Qt that ends in another
thread than its own takes the program with it, sometimes minutes later. So the GUI thread keeps hold of what
an errand refers to until it has heard of its end; the other thread lets go of an empty errand.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cache
from typing import Generic, TypeVar, cast

from PySide6.QtCore import QObject, Qt, Signal, Slot
from shiboken6 import isValid

Result = TypeVar("Result")


class Errand(Generic[Result]):
    """Work, and whom to tell of its end. Made in the GUI thread; `run` is for the other one.

    `on_end` is a method of an object of Qt. It gets the errand in the GUI thread, unless its object is gone
    by then: `error` is what the work raised, or None and `result` is what it returned.
    """

    def __init__(self, work: Callable[[], Result], on_end: Callable[[Errand[Result]], None]) -> None:
        self._work: Callable[[], Result] | None = work
        self._on_end: weakref.WeakMethod[Callable[[Errand[Result]], None]] = weakref.WeakMethod(on_end)
        self.result: Result | None = None
        self.error: Exception | None = None
        self._post = _post()
        self._post.under_way.add(cast(Errand[object], self))

    def run(self) -> None:
        """Do the work; nothing that happens leaves this method."""
        assert self._work is not None
        try:
            self.result = self._work()
        except Exception as error:  # noqa: BLE001 - the thread's boundary; whoever is told decides
            self.error = error
        self._post.ended.emit(self)

    def deliver(self) -> None:
        """In the GUI thread: tell of the end, and keep nothing."""
        on_end = self._on_end()
        owner = getattr(on_end, "__self__", None)
        try:
            if on_end is not None and isValid(owner):
                on_end(self)
        finally:
            self._work = self.result = self.error = None


class _Post(QObject):
    """Brings errands back into the GUI thread. Lives as long as the program."""

    ended = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.under_way: set[Errand[object]] = set()
        self.ended.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    @Slot(object)
    def _deliver(self, errand: Errand[object]) -> None:
        self.under_way.discard(errand)
        errand.deliver()


@cache
def _post() -> _Post:
    return _Post()
