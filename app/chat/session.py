"""Joins the conversation that is shown to the store and the engine. No widgets: signals tell the window.

The user's message and an empty answer are on the disk before the engine hears of it (see `Generation`).
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.chat import beginnings
from app.chat.beginnings import Beginning
from app.chat.generation import Generation
from app.chat.not_now import not_now
from app.chat.plan import AnswerPlan, plan_of
from app.chat.requests import prompt_of
from app.chat.setup import ChatParameters
from app.chat.shown import ShownChat
from app.presets.format import setup_to_json
from app.presets.store import PresetStore
from app.storage import ChatStore, Conversation, Exchange, MessageRow, StorageError
from app.storage.thread import StorageThread
from app.worker import EngineWorker
from engine.params import GenerationParams
from engine.status import EngineStatus


class ChatSession(QObject):
    """One conversation on the screen and at most one answer under way, perhaps in another conversation."""

    opened = Signal(object, object)  # Conversation (None: a chat that is not begun), its messages
    begun = Signal(object)  # Conversation: the chat that is shown was saved with its first message
    renamed = Signal(object)  # Conversation shown, with its new title
    message_added = Signal(object)  # MessageRow at the end
    messages_changed = Signal(object)  # the messages shown, after some of them went or others came
    message_changed = Signal(object)  # MessageRow of the answer under way: what the model reads is known
    message_finished = Signal(object)  # MessageRow as it ended
    text_added = Signal(int, str)  # message id, more text
    prompt_progress = Signal(int, object)
    stats = Signal(object)  # GenerationStats of the answer under way
    busy_changed = Signal(bool)  # whether an answer is being written
    refused = Signal(object, str)  # chat (None: not begun) and a text that could not be saved in it
    list_changed = Signal()
    failed = Signal(object)  # EngineError that belongs to no message

    def __init__(
        self,
        storage: StorageThread,
        worker: EngineWorker,
        presets: PresetStore,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._storage = storage
        self._shown = ShownChat()
        self.generation = Generation(storage, worker, self)
        self.parameters = ChatParameters(storage, presets, self)
        self.parameters.saved.connect(self.adopt)
        self._starting = False  # between the user's Enter and the saved exchange
        self._stop_asked = False  # meanwhile
        self._status: EngineStatus | None = None
        self.defaults = GenerationParams()  # the model's own
        worker.loaded.connect(self._on_loaded)
        worker.closed.connect(self._on_closed)
        worker.prompt_progress.connect(self.prompt_progress)
        self.generation.text_added.connect(self.text_added)
        self.generation.stats.connect(self.stats)
        self.generation.row_changed.connect(self._on_row_changed)
        self.generation.ended.connect(self._on_ended)
        self.generation.idle.connect(lambda: self.busy_changed.emit(self.busy))
        self.generation.versions_changed.connect(self._on_versions_changed)
        self.generation.saved.connect(self.list_changed)

    @property
    def conversation(self) -> Conversation | None:
        """The chat that is shown; None for one that is not begun."""
        return self._shown.conversation

    @property
    def messages(self) -> list[MessageRow]:
        """The messages that are shown; the text of an answer under way is as of its beginning."""
        return list(self._shown.messages)

    @property
    def busy(self) -> bool:
        """Whether an answer is being written, or about to be."""
        return self.answering_id is not None or self._starting

    @property
    def answering_id(self) -> int | None:
        """The chat in which an answer is being written."""
        return self.generation.conversation_id

    @property
    def model(self) -> EngineStatus | None:
        """The model that is loaded."""
        return self._status

    @property
    def system_prompt(self) -> str:
        """That of the chat that is shown, or of the one that would be begun."""
        return self.parameters.setup.system_prompt

    @property
    def params(self) -> GenerationParams:
        """What the next answer is asked for with; the first, where there are several."""
        return self._plan().shown

    def new_chat(self) -> None:
        """Show an empty chat; it is saved with its first message."""
        self._shown.clear()
        self.parameters.show(None)
        self.opened.emit(None, [])

    def open(self, conversation_id: int) -> None:
        """Show a saved chat."""
        self._shown.want(conversation_id)

        def read(store: ChatStore) -> tuple[Conversation, list[MessageRow]]:
            return store.conversation(conversation_id), store.messages(conversation_id)

        def failed(error: StorageError) -> None:
            self._shown.want_no_more(conversation_id)
            self.failed.emit(error)

        self._storage.run(read).then(self._show, failed)

    def show_rows(self, conversation_id: int, rows: list[MessageRow]) -> None:
        """The messages of a chat have changed in the store: if it is shown, show them."""
        if self._shown.is_wanted(conversation_id):
            self._shown.messages = self._newest(rows)
            self.messages_changed.emit(self.messages)
        self.list_changed.emit()

    def send(self, text: str) -> None:
        """Save the user's message in the chat that is shown, then have it answered."""
        if not self.busy and self._status is not None:
            self._ask(self.conversation, text)

    def send_waiting(self, conversation_id: int | None, text: str) -> None:
        """The same in any chat (None: a new one) with the message that waits there on the disk."""
        shown = self.conversation
        if conversation_id is None or (shown is not None and shown.id == conversation_id):
            self._ask(None if conversation_id is None else shown, text, waited=True)
            return
        self._set_starting(True)
        self._storage.run(ChatStore.present_conversation, conversation_id).then(
            lambda chat: self._ask(chat, text, waited=True),
            lambda error: self._refuse(error, (conversation_id, text)),
        )

    def _ask(self, chat: Conversation | None, text: str, *, waited: bool = False) -> None:
        setup = self.parameters.of(chat)
        plan, parameters = plan_of(setup, self.defaults), setup_to_json(setup)
        saving = beginnings.question(chat, text, self._model_name, plan, parameters, waited=waited)
        self._start(saving, plan, (None if chat is None else chat.id, text))

    def regenerate(self, message_id: int | None = None, plan: AnswerPlan | None = None) -> None:
        """Answer once more, in place of an answer (or of the last) and of what followed; both are kept.

        `plan` is how, if not as the chat is answered.
        """
        chat = self._answerable()
        if chat is None:
            return
        plan = plan or self._plan()
        self._start(beginnings.other_answer(chat, message_id, self._model_name, plan), plan)

    def edit_question(self, message_id: int, text: str) -> None:
        """Have another version of a user's message answered; the old one is kept, with what followed."""
        chat = self._answerable()
        if chat is None:
            return
        plan, model = self._plan(), self._model_name
        self._start(beginnings.edited_question(chat, message_id, text, model, plan), plan)

    def go_on(self, message_id: int) -> None:
        """Continue the last answer where it ends."""
        chat = self._answerable()
        if chat is None:
            return
        self._storage.flush()
        self._start(beginnings.continuation(chat, message_id), self._plan().alone)

    @Slot()
    def stop(self) -> None:
        """Stop the answer under way; what is there stays."""
        self._stop_asked = self._starting
        self.generation.stop()

    def end_now(self) -> None:
        """Save the answer under way as stopped, without waiting for the engine: the program closes."""
        self.generation.end_now()

    def rename(self, conversation_id: int, title: str) -> None:
        """Give a chat another title."""
        self._storage.run(ChatStore.rename, conversation_id, title).then(self._on_renamed)

    def _show(self, read: tuple[Conversation, list[MessageRow]]) -> None:
        conversation, rows = read[0], self._newest(read[1])
        if self._shown.show(conversation, rows):
            self.parameters.show(conversation)
            self.opened.emit(conversation, rows)

    def _newest(self, rows: list[MessageRow]) -> list[MessageRow]:
        return [self.generation.newest(row) for row in rows]

    @property
    def _model_name(self) -> str:
        return "" if self._status is None else self._status.model_name

    def _plan(self) -> AnswerPlan:
        return plan_of(self.parameters.setup, self.defaults)

    def _answerable(self) -> Conversation | None:
        """The chat that is shown, if it can be answered now; says why if not."""
        error = not_now(busy=self.busy, model=self._status is not None)
        if error is not None and self.conversation is not None:
            self.failed.emit(error)
        return None if error is not None else self.conversation

    def _start(self, save: Beginning, plan: AnswerPlan, sent: tuple[int | None, str] | None = None) -> None:
        """Save what is asked for, then ask; `sent`, a message and its chat, is given back if that fails."""
        new = sent is not None and sent[0] is None
        self._set_starting(True)
        self._storage.run(save).then(
            lambda saved: self._begin(*saved, plan, new), lambda error: self._refuse(error, sent)
        )

    def _refuse(self, error: StorageError, sent: tuple[int | None, str] | None) -> None:
        self._set_starting(False)
        if sent is not None:
            self.refused.emit(*sent)
        self.failed.emit(error)

    def _begin(self, conversation: Conversation, exchange: Exchange, plan: AnswerPlan, new: bool) -> None:
        self.generation.prepare(exchange)
        if new:
            self.parameters.begun()
        if new and self._shown.is_new:
            self._shown.begin(conversation)
            self.parameters.show(conversation)
            self.begun.emit(conversation)
        if self._shown.is_wanted(conversation.id):
            before = [row for row in exchange.history if row.id != exchange.answer.id]  # if it is continued
            self._show_from_now([*before, exchange.answer])
        self._starting = False
        self.busy_changed.emit(True)
        self.list_changed.emit()
        self.generation.begin(prompt_of(plan.system_prompt, exchange.history), plan.params)
        if self._stop_asked:
            self.stop()

    def _show_from_now(self, rows: list[MessageRow]) -> None:
        """Take off what is shown no more, then add what is new at the end."""
        fewer, added = self._shown.go_on_with(rows)
        if fewer:
            self.messages_changed.emit(self.messages)
        for row in added:
            self._shown.messages.append(row)
            self.message_added.emit(row)

    def _set_starting(self, starting: bool) -> None:
        self._starting, self._stop_asked = starting, False
        self.busy_changed.emit(self.busy)

    @Slot(object, object)
    def _on_loaded(self, status: EngineStatus, defaults: GenerationParams) -> None:
        self._status, self.defaults = status, defaults

    @Slot()
    def _on_closed(self) -> None:
        self._status = None

    @Slot(object)
    def _on_ended(self, row: MessageRow) -> None:
        self._shown.replace_last(row)
        self.message_finished.emit(row)

    @Slot(object)
    def _on_row_changed(self, row: MessageRow) -> None:
        if self._shown.replace_last(row):
            self.message_changed.emit(row)

    @Slot(int)
    def _on_versions_changed(self, conversation_id: int) -> None:
        def show(rows: list[MessageRow]) -> None:
            if not self.busy:  # it is told once more at the end
                self.show_rows(conversation_id, rows)

        self._storage.run(ChatStore.messages, conversation_id).then(show)

    def adopt(self, conversation: Conversation) -> None:
        """The chat was changed in the store: if it is the one that is shown, show it as it is now."""
        if self._shown.adopt(conversation):
            self.parameters.show(conversation)
            self.renamed.emit(conversation)

    @Slot(object)
    def _on_renamed(self, conversation: Conversation) -> None:
        self.adopt(conversation)
        self.list_changed.emit()
