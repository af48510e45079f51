"""One answer under way: what the engine writes is told as it comes, and saved about every second.

The engine's request id is the answer's message id. No widgets.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal, Slot

from app.storage import MessageRow, MessageState
from app.storage.figures import stats_to_json
from app.storage.thread import StorageThread
from app.worker import EngineWorker
from engine.errors import EngineError, PromptTooLongError
from engine.events import Finished, FinishReason, GenerationStats
from engine.params import GenerationParams, Message

_GENERATE = "generate"


@dataclass
class _Answer:
    """`row` is as it was saved at the beginning; a continued answer has text there."""

    row: MessageRow
    stats: GenerationStats | None = None
    pieces: list[str] = field(default_factory=list)

    def as_row(self) -> MessageRow:
        """The message as it would be read from the store, with the newest text."""
        self.pieces = ["".join(self.pieces)]
        return dataclasses.replace(self.row, content=self.row.content + self.pieces[0])


class Generation(QObject):
    """At most one answer at a time. It is on the disk, empty, before the engine hears of it."""

    text_added = Signal(int, str)  # message id, more text
    stats = Signal(object)  # GenerationStats
    ended = Signal(object)  # MessageRow as it ended
    saved = Signal()  # its end is on the disk, too

    def __init__(self, storage: StorageThread, worker: EngineWorker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._storage, self._worker = storage, worker
        self._answer: _Answer | None = None
        worker.text.connect(self._on_text)
        worker.stats.connect(self._on_stats)
        worker.finished.connect(self._on_finished)
        worker.failed.connect(self._on_failed)
        worker.cancelled.connect(self._on_cancelled)

    @property
    def row(self) -> MessageRow | None:
        """The answer with its newest text; None if there is none under way."""
        return None if self._answer is None else self._answer.as_row()

    @property
    def conversation_id(self) -> int | None:
        """The chat in which an answer is being written."""
        return None if self._answer is None else self._answer.row.conversation_id

    def prepare(self, row: MessageRow) -> None:
        """This saved answer is the one that comes next."""
        self._answer = _Answer(row)

    def begin(self, messages: list[Message], params: GenerationParams) -> None:
        """Have the prepared answer written."""
        assert self._answer is not None
        self._worker.generate(self._answer.row.id, messages, params)

    def stop(self) -> None:
        """Stop the answer within a token; what is there stays."""
        if self._answer is not None:
            self._worker.cancel()

    def end_now(self) -> None:
        """Save the answer as stopped, without waiting for the engine: the program closes."""
        if self._answer is not None:
            self._worker.flush()
        if self._answer is not None:
            self._end(MessageState.STOPPED, reason=FinishReason.CANCELLED)

    def _is_answer(self, message_id: int) -> bool:
        return self._answer is not None and self._answer.row.id == message_id

    @Slot(int, str)
    def _on_text(self, message_id: int, text: str) -> None:
        if self._answer is None or not self._is_answer(message_id):
            return
        self._answer.pieces.append(text)
        self._storage.save_partial(message_id, self._answer.as_row().content)
        self.text_added.emit(message_id, text)

    @Slot(int, object)
    def _on_stats(self, message_id: int, stats: GenerationStats) -> None:
        if self._answer is not None and self._is_answer(message_id):
            self._answer.stats = stats
            self.stats.emit(stats)

    @Slot(int, object)
    def _on_finished(self, message_id: int, finished: Finished) -> None:
        if self._answer is None or not self._is_answer(message_id):
            return
        self._answer.stats = finished.stats
        self.stats.emit(finished.stats)
        stopped = finished.reason is FinishReason.CANCELLED
        state = MessageState.STOPPED if stopped else MessageState.COMPLETE
        self._end(state, reason=finished.reason, note=finished.message)

    @Slot(str, object)
    def _on_failed(self, operation: str, error: EngineError) -> None:
        if operation == _GENERATE and self._answer is not None:
            full = FinishReason.CONTEXT_FULL if isinstance(error, PromptTooLongError) else None
            self._end(MessageState.ERROR, reason=full, note=str(error))

    @Slot(str)
    def _on_cancelled(self, operation: str) -> None:
        if operation == _GENERATE and self._answer is not None:
            self._end(MessageState.STOPPED, reason=FinishReason.CANCELLED)

    def _end(self, state: MessageState, *, reason: FinishReason | None = None, note: str = "") -> None:
        answer, self._answer = self._answer, None
        assert answer is not None
        row = dataclasses.replace(
            answer.as_row(),
            state=state,
            reason=reason or "",
            note=note,
            stats=None if answer.stats is None else stats_to_json(answer.stats),
        )
        saving = self._storage.finish_message(
            row.id, row.content, state, stats=answer.stats, reason=reason, note=note
        )
        saving.then(lambda _: self.saved.emit())
        self.ended.emit(row)
