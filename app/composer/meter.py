"""Keeps the count of tokens in step with what is written: off the window's thread, the latest text wins."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.composer.count import Counted, Counts, Question
from app.engine_factory import TokenCounter
from app.i18n import tr
from app.widgets.background import Background
from engine.errors import EngineError

PAUSE_MS = 200  # after the latest key
BUSY_PAUSE_MS = 700  # the same while an answer is being written, whose processor this takes


class TokenMeter(QObject):
    """Asks `question` what to count when told that something has changed; None: there is nothing."""

    counted = Signal(object)  # Counted, or None

    def __init__(self, question: Callable[[], Question | None], parent: QObject) -> None:
        super().__init__(parent)
        self._question = question
        self._counts: Counts | None = None
        self._latest: Counted | None = None
        self._again = False  # something has changed since the count under way began
        self._background: Background[Counted] = Background(tr("Counting tokens"), self)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._count)

    def of(self, message: str) -> Counted | None:
        """The count, if it is that of this very message."""
        latest = self._latest
        return latest if latest is not None and latest.message == message else None

    @Slot(object)
    def use(self, counter: TokenCounter | None) -> None:
        """Another model was loaded, or none is."""
        self._counts = None if counter is None else Counts(counter)
        self._background.forget()
        self._again = False
        self._tell(None)
        self.update()

    def count_now(self) -> bool:
        """Count at once; `counted` follows. False without a tokenizer."""
        if self._counts is None:
            return False
        self._timer.stop()
        self._count()
        return True

    def update(self, *, busy: bool = False) -> None:
        """Something has changed: count soon. `busy`: an answer is being written."""
        if self._counts is None:
            return
        self._timer.start(BUSY_PAUSE_MS if busy else PAUSE_MS)

    @Slot()
    def _count(self) -> None:
        counts, question = self._counts, self._question()
        if counts is None or question is None:
            self._background.forget()
            self._tell(None)
        elif self._background.busy:
            self._again = True  # one after the other: a slow count must not pile up
        else:
            self._background.run(lambda: counts.count(question), self._done, self._failed)

    def _done(self, counted: Counted) -> None:
        self._tell(counted)
        if self._again:
            self._again = False
            self._count()

    def _failed(self, _error: EngineError) -> None:
        self._again = False
        self._tell(None)  # a model without a chat template: sending says so

    def _tell(self, counted: Counted | None) -> None:
        self._latest = counted
        self.counted.emit(counted)
