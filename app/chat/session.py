"""Joins the conversation that is shown to the store and the engine. No widgets: signals tell the window.

The user's message and an empty answer are on the disk before the engine hears of it; the answer so far is
saved about every second, and once more when it ends. The engine's request id is the answer's message id.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.requests import title_from, turns
from app.settings import SettingsStore, generation_params, registry
from app.storage import ChatStore, Conversation, Exchange, MessageRow, MessageState, StorageError
from app.storage.figures import stats_to_json
from app.storage.thread import StorageThread
from app.worker import EngineWorker
from engine.errors import EngineError, PromptTooLongError
from engine.events import Finished, FinishReason, GenerationStats
from engine.params import GenerationParams
from engine.status import EngineStatus

_GENERATE = "generate"


@dataclass
class _Answer:
    """The answer that is being generated; its chat need not be the one that is shown."""

    row: MessageRow
    pieces: list[str] = field(default_factory=list)
    stats: GenerationStats | None = None

    @property
    def text(self) -> str:
        """All text so far, joined once."""
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def as_row(self) -> MessageRow:
        """The message as it would be read from the store, with the newest text."""
        return dataclasses.replace(self.row, content=self.text)


class ChatSession(QObject):
    """One conversation on the screen and at most one answer under way, perhaps in another conversation."""

    opened = Signal(object, object)  # Conversation (None: a chat that is not begun), its messages
    begun = Signal(object)  # Conversation: the chat that is shown was saved with its first message
    renamed = Signal(object)  # Conversation shown, with its new title
    message_added = Signal(object)  # MessageRow at the end
    messages_changed = Signal(object)  # the messages shown, after some of them went or others came
    message_finished = Signal(object)  # MessageRow as it ended
    text_added = Signal(int, str)  # message id, more text
    prompt_progress = Signal(int, object)
    stats = Signal(object)  # GenerationStats of the answer under way
    busy_changed = Signal(bool)  # whether an answer is being written
    refused = Signal(str)  # a text that could not be saved: it belongs back into the composer
    list_changed = Signal()
    failed = Signal(object)  # EngineError that belongs to no message

    def __init__(
        self,
        storage: StorageThread,
        worker: EngineWorker,
        settings: SettingsStore,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._storage, self._worker, self._settings = storage, worker, settings
        self._conversation: Conversation | None = None
        self._wanted: int | None = None  # the chat that was asked for last
        self._messages: list[MessageRow] = []
        self._answer: _Answer | None = None
        self._starting = False  # between the user's Enter and the saved exchange
        self._stop_asked = False  # meanwhile
        self._status: EngineStatus | None = None
        self._defaults = GenerationParams()
        worker.loaded.connect(self._on_loaded)
        worker.closed.connect(self._on_closed)
        worker.text.connect(self._on_text)
        worker.stats.connect(self._on_stats)
        worker.prompt_progress.connect(self.prompt_progress)
        worker.finished.connect(self._on_finished)
        worker.failed.connect(self._on_failed)
        worker.cancelled.connect(self._on_cancelled)

    @property
    def conversation(self) -> Conversation | None:
        """The chat that is shown; None for one that is not begun."""
        return self._conversation

    @property
    def messages(self) -> list[MessageRow]:
        """The messages that are shown; the text of an answer under way is as of its beginning."""
        return list(self._messages)

    @property
    def busy(self) -> bool:
        """Whether an answer is being written, or about to be."""
        return self._answer is not None or self._starting

    @property
    def answering_id(self) -> int | None:
        """The chat in which an answer is being written."""
        return self._answer.row.conversation_id if self._answer else None

    @property
    def model(self) -> EngineStatus | None:
        """The model that is loaded."""
        return self._status

    def new_chat(self) -> None:
        """Show an empty chat; it is saved with its first message."""
        self._wanted, self._conversation, self._messages = None, None, []
        self.opened.emit(None, [])

    def open(self, conversation_id: int) -> None:
        """Show a saved chat."""
        self._wanted = conversation_id

        def read(store: ChatStore) -> tuple[Conversation, list[MessageRow]]:
            return store.conversation(conversation_id), store.messages(conversation_id)

        self._storage.run(read).then(self._show)

    def send(self, text: str) -> None:
        """Save the user's message, then have it answered."""
        if self.busy or self._status is None:
            return
        conversation, model = self._conversation, self._status.model_name
        params = generation_params(self._settings, self._defaults)
        system_prompt = self._settings.get(registry.SYSTEM_PROMPT)

        def save(store: ChatStore) -> tuple[Conversation, Exchange]:
            chat = conversation or store.create_conversation(title_from(text), model, system_prompt)
            try:
                return chat, store.begin_exchange(chat.id, text, model=model, params=params)
            except StorageError:
                if conversation is None:
                    with suppress(StorageError):  # the first error is the one to tell about
                        store.delete(chat.id)
                raise

        def refuse(error: StorageError) -> None:
            self._set_starting(False)
            self.refused.emit(text)
            self.failed.emit(error)

        self._set_starting(True)
        self._storage.run(save).then(lambda saved: self._begin(*saved, params, is_new=True), refuse)

    def regenerate(self) -> None:
        """Answer the last message once more; the earlier answer stays in the store as an alternative."""
        conversation = self._conversation
        if self.busy or self._status is None or conversation is None:
            return
        model, params = self._status.model_name, generation_params(self._settings, self._defaults)

        def save(store: ChatStore) -> tuple[Conversation, Exchange]:
            return conversation, store.begin_regeneration(conversation.id, model=model, params=params)

        def refuse(error: StorageError) -> None:
            self._set_starting(False)
            self.failed.emit(error)

        self._set_starting(True)
        self._storage.run(save).then(lambda saved: self._begin(*saved, params, is_new=False), refuse)

    @Slot()
    def stop(self) -> None:
        """Stop the answer under way; what is there stays."""
        self._stop_asked = self._starting
        if self._answer is not None:
            self._worker.cancel()

    def end_now(self) -> None:
        """Save the answer under way as stopped, without waiting for the engine: the program closes."""
        if self._answer is not None:
            self._worker.flush()
        if self._answer is not None:
            self._end(MessageState.STOPPED, reason=FinishReason.CANCELLED)

    def rename(self, conversation_id: int, title: str) -> None:
        """Give a chat another title."""
        self._storage.run(ChatStore.rename, conversation_id, title).then(self._on_renamed)

    def _show(self, read: tuple[Conversation, list[MessageRow]]) -> None:
        conversation, rows = read
        if self._wanted != conversation.id:
            return  # another chat was asked for meanwhile
        self._conversation, self._messages = conversation, rows
        shown = [self._answer.as_row() if self._is_answer(row.id) and self._answer else row for row in rows]
        self.opened.emit(conversation, shown)

    def _begin(
        self, conversation: Conversation, exchange: Exchange, params: GenerationParams, *, is_new: bool
    ) -> None:
        self._answer = _Answer(exchange.answer)
        begun_here = self._conversation is None and self._wanted is None
        if begun_here:
            self._conversation, self._wanted = conversation, conversation.id
            self.begun.emit(conversation)
        if self._wanted == conversation.id:
            if is_new:
                self._append(exchange.history[-1])
            elif self._messages and self._messages[-1].role == "assistant":
                self._messages.pop()
                self.messages_changed.emit(self.messages)
            self._append(exchange.answer)
        self._starting = False
        self.busy_changed.emit(True)
        self.list_changed.emit()
        messages = turns(conversation.system_prompt, exchange.history)
        self._worker.generate(exchange.answer.id, messages, params)
        if self._stop_asked:
            self.stop()

    def _append(self, row: MessageRow) -> None:
        self._messages.append(row)
        self.message_added.emit(row)

    def _set_starting(self, starting: bool) -> None:
        self._starting, self._stop_asked = starting, False
        self.busy_changed.emit(self.busy)

    def _is_answer(self, message_id: int) -> bool:
        return self._answer is not None and self._answer.row.id == message_id

    @Slot(object, object)
    def _on_loaded(self, status: EngineStatus, defaults: GenerationParams) -> None:
        self._status, self._defaults = status, defaults

    @Slot()
    def _on_closed(self) -> None:
        self._status = None

    @Slot(int, str)
    def _on_text(self, message_id: int, text: str) -> None:
        if self._answer is None or not self._is_answer(message_id):
            return
        self._answer.pieces.append(text)
        self._storage.save_partial(message_id, self._answer.text)
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
        saving.then(lambda _: self.list_changed.emit())
        if self._messages and self._messages[-1].id == row.id:
            self._messages[-1] = row
        self.message_finished.emit(row)
        self.busy_changed.emit(self.busy)

    def adopt(self, conversation: Conversation) -> None:
        """The chat was changed in the store: if it is the one that is shown, show it as it is now."""
        if self._conversation is not None and self._conversation.id == conversation.id:
            self._conversation = conversation
            self.renamed.emit(conversation)

    @Slot(object)
    def _on_renamed(self, conversation: Conversation) -> None:
        self.adopt(conversation)
        self.list_changed.emit()
