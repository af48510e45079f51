"""The answers under way: what the engine writes is told as it comes, and saved about every second.

The engine's request ids are the answers' message ids. No widgets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.requests import Prompt
from app.i18n import tr
from app.storage import ChatStore, Exchange, MessageRow, MessageState
from app.storage.figures import stats_to_json
from app.storage.thread import StorageThread
from app.storage.together import OtherAnswer
from app.worker import EngineWorker
from engine.errors import EngineError, PromptTooLongError
from engine.events import Answer, Finished, FinishReason, GenerationStats
from engine.params import GenerationParams

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
    """One answer at a time, or several to one question. They are on the disk before the engine hears of them.

    The first of several is shown in the chat; the others become its other versions.
    """

    text_added = Signal(int, str)  # message id, more text
    stats = Signal(object)  # GenerationStats of the answer that is shown
    row_changed = Signal(object)  # MessageRow of an answer under way: what the model reads for it is known
    ended = Signal(object)  # MessageRow, of the answer that is shown
    remaining_changed = Signal(int, int)  # id of the answer that is shown and has ended, how many have not
    searching = Signal(int, int, int)  # id, beams, tokens so far
    idle = Signal()  # the last of all answers has ended
    saved = Signal()  # the end of one is on the disk, too
    versions_changed = Signal(int)  # the chat's id: a search has found other versions, or empty ones are gone

    def __init__(self, storage: StorageThread, worker: EngineWorker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._storage, self._worker = storage, worker
        self._answers: dict[int, _Answer] = {}  # by message id: those that have not ended
        self._unsaved: dict[int, MessageRow] = {}  # those that have, until that is on the disk
        self._shown: int | None = None
        self._sent: Prompt | None = None
        worker.turns_dropped.connect(self._on_turns_dropped)
        worker.text.connect(self._on_text)
        worker.stats.connect(self._on_stats)
        worker.finished.connect(self._on_finished)
        worker.failed.connect(self._on_failed)
        worker.cancelled.connect(self._on_cancelled)

    def newest(self, row: MessageRow) -> MessageRow:
        """A message that was read from the store, which may not have had its newest text or its end yet."""
        answer = self._answers.get(row.id)
        return self._unsaved.get(row.id, row) if answer is None else answer.as_row()

    @property
    def conversation_id(self) -> int | None:
        """The chat in which answers are being written."""
        return next((answer.row.conversation_id for answer in self._answers.values()), None)

    @property
    def remaining(self) -> int:
        """How many answers have not ended."""
        return len(self._answers)

    def prepare(self, exchange: Exchange) -> None:
        """These saved answers are the ones that come next."""
        self._shown = exchange.answer.id
        self._answers = {row.id: _Answer(row) for row in (exchange.answer, *exchange.others)}

    def begin(self, prompt: Prompt, params: Sequence[GenerationParams]) -> None:
        """Have the prepared answers written, each with its parameters."""
        self._sent = prompt
        self._worker.generate_together(list(self._answers), prompt.messages, params)

    def stop(self) -> None:
        """Stop the answers within a token; what is there stays."""
        if self._answers:
            self._worker.stop_answers()

    def end_now(self) -> None:
        """Save the answers as stopped, without waiting for the engine: the program closes."""
        if self._answers:
            self._worker.flush()
        self._end_all(MessageState.STOPPED, reason=FinishReason.CANCELLED)

    @Slot(int, int)
    def _on_turns_dropped(self, message_id: int, messages: int) -> None:
        answer = self._answers.get(message_id)
        if answer is None or self._sent is None:
            return
        seen_from = self._sent.ids[messages]
        answer.row = dataclasses.replace(answer.row, seen_from=seen_from)
        self._storage.run(ChatStore.save_seen_from, message_id, seen_from)
        self.row_changed.emit(answer.as_row())

    @Slot(int, str)
    def _on_text(self, message_id: int, text: str) -> None:
        answer = self._answers.get(message_id)
        if answer is None:
            return
        answer.pieces.append(text)
        self._storage.save_partial(message_id, answer.as_row().content)
        self.text_added.emit(message_id, text)

    @Slot(int, object)
    def _on_stats(self, message_id: int, stats: GenerationStats) -> None:
        answer = self._answers.get(message_id)
        if answer is not None:
            answer.stats = stats
            if message_id == self._shown:
                self.stats.emit(stats)
                beams = int((answer.row.params or {}).get("beams", 1))
                if beams > 1:
                    self.searching.emit(message_id, beams, stats.generated_tokens)

    @Slot(int, object)
    def _on_finished(self, message_id: int, finished: Finished) -> None:
        answer = self._answers.get(message_id)
        if answer is None:
            return
        self._on_stats(message_id, finished.stats)
        stopped = finished.reason is FinishReason.CANCELLED
        state = MessageState.STOPPED if stopped else MessageState.COMPLETE
        self._end(message_id, state, reason=finished.reason, note=finished.message)
        if len(finished.answers) > 1:
            others = [_other(number, found, finished) for number, found in enumerate(finished.answers[1:], 2)]
            self._storage.run(ChatStore.add_other_answers, message_id, others).then(
                self.versions_changed.emit
            )

    @Slot(str, object)
    def _on_failed(self, operation: str, error: EngineError) -> None:
        if operation == _GENERATE:
            full = FinishReason.CONTEXT_FULL if isinstance(error, PromptTooLongError) else None
            self._end_all(MessageState.ERROR, reason=full, note=str(error))

    @Slot(str)
    def _on_cancelled(self, operation: str) -> None:
        if operation == _GENERATE:
            self._end_all(MessageState.STOPPED, reason=FinishReason.CANCELLED)

    def _end_all(self, state: MessageState, *, reason: FinishReason | None, note: str = "") -> None:
        for message_id in list(self._answers):
            self._end(message_id, state, reason=reason, note=note)

    def _end(
        self, message_id: int, state: MessageState, *, reason: FinishReason | None = None, note: str = ""
    ) -> None:
        answer = self._answers.pop(message_id)
        row = dataclasses.replace(
            answer.as_row(),
            state=state,
            reason=reason or "",
            note=note,
            stats=None if answer.stats is None else stats_to_json(answer.stats),
        )
        self._unsaved[message_id] = row
        saving = self._storage.finish_message(
            row.id, row.content, state, stats=answer.stats, reason=reason, note=note
        )
        saving.then(lambda _: self._on_saved(message_id))
        if message_id == self._shown:
            self.ended.emit(row)
        elif not row.content:  # another version without a word is of no use to anybody
            self._storage.run(ChatStore.drop_empty_version, message_id).then(self.versions_changed.emit)
        if self._shown is not None and self._shown not in self._answers:
            self.remaining_changed.emit(self._shown, self.remaining)
        if not self._answers:
            self.idle.emit()

    def _on_saved(self, message_id: int) -> None:
        self._unsaved.pop(message_id, None)
        self.saved.emit()


def _other(number: int, found: Answer, finished: Finished) -> OtherAnswer:
    best = finished.answers[0]
    note = tr(
        "Number {number} of the search: score {score}, the first one's is {best}.",
        number=number,
        score=f"{found.score:.3f}",
        best=f"{best.score:.3f}",
    )
    return OtherAnswer(found.text, found.reason, note)
