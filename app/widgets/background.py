"""Short work that may wait for a disk or a driver, away from the GUI thread (detecting, planning)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from PySide6.QtCore import QObject, QThreadPool

from app.errors import UnexpectedError
from app.widgets.errand import Errand
from engine.errors import EngineError

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class Background(QObject, Generic[Result]):
    """Runs one function at a time and answers in the GUI thread; only the latest request is answered.

    `title` is the work as the subject of a sentence, for the message if the program itself is at fault.
    """

    def __init__(self, title: str, parent: QObject) -> None:
        super().__init__(parent)
        self._title = title
        self._errand: Errand[Result] | None = None
        self._on_done: Callable[[Result], None] | None = None
        self._on_failed: Callable[[EngineError], None] | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._errand is not None

    def run(
        self,
        work: Callable[[], Result],
        on_done: Callable[[Result], None],
        on_failed: Callable[[EngineError], None],
    ) -> None:
        """Start `work` in another thread; an earlier request that still runs will not be answered."""
        self._on_done, self._on_failed = on_done, on_failed
        self._errand = Errand(work, self._receive)
        QThreadPool.globalInstance().start(self._errand.run)

    def forget(self) -> None:
        """No answer is wanted any more."""
        self._errand = None

    def _receive(self, errand: Errand[Result]) -> None:
        unforeseen = errand.error is not None and not isinstance(errand.error, EngineError)
        if unforeseen:  # also of a request that nobody waits for: it is a fault of ours
            log.error("%s ended with an unexpected error", self._title, exc_info=errand.error)
        if errand is not self._errand:
            return  # was under way when it was forgotten
        self._errand = None
        if errand.error is None:
            assert self._on_done is not None
            self._on_done(cast(Result, errand.result))
            return
        assert self._on_failed is not None
        if isinstance(errand.error, EngineError):
            self._on_failed(errand.error)
        else:
            self._on_failed(UnexpectedError(self._title, errand.error))
