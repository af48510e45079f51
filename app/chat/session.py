"""Joins the conversation that is shown to the store and the engine. No widgets: signals tell the window.

The user's message and an empty answer are on the disk before the engine hears of it (see `Generation`).
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.chat import beginnings
from app.chat.beginnings import Beginning
from app.chat.generation import Generation
from app.chat.plan import AnswerPlan, plan_of
from app.chat.requests import prompt_of
from app.chat.setup import ChatParameters
from app.i18n import tr
from app.presets.format import setup_to_json
from app.presets.store import PresetStore
from app.storage import ChatStore, Conversation, Exchange, MessageRow, StorageError
from app.storage.thread import StorageThread
from app.worker import EngineWorker
from engine.errors import EngineError
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
    refused = Signal(str)  # a text that could not be saved: it belongs back into the composer
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
        self._conversation: Conversation | None = None
        self._wanted: int | None = None  # the chat that was asked for last
        self._messages: list[MessageRow] = []
        self._generation = Generation(storage, worker, self)
        self.parameters = ChatParameters(storage, presets, self)
        self.parameters.saved.connect(self.adopt)
        self._starting = False  # between the user's Enter and the saved exchange
        self._stop_asked = False  # meanwhile
        self._status: EngineStatus | None = None
        self.defaults = GenerationParams()  # the model's own
        worker.loaded.connect(self._on_loaded)
        worker.closed.connect(self._on_closed)
        worker.prompt_progress.connect(self.prompt_progress)
        self._generation.text_added.connect(self.text_added)
        self._generation.stats.connect(self.stats)
        self._generation.row_changed.connect(self._on_row_changed)
        self._generation.ended.connect(self._on_ended)
        self._generation.idle.connect(self._on_idle)
        self._generation.versions_changed.connect(self._on_versions_changed)
        self._generation.saved.connect(self.list_changed)

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
        return self.answering_id is not None or self._starting

    @property
    def answering_id(self) -> int | None:
        """The chat in which an answer is being written."""
        return self._generation.conversation_id

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
        self._wanted, self._conversation, self._messages = None, None, []
        self.parameters.show(None)
        self.opened.emit(None, [])

    def open(self, conversation_id: int) -> None:
        """Show a saved chat."""
        self._wanted = conversation_id

        def read(store: ChatStore) -> tuple[Conversation, list[MessageRow]]:
            return store.conversation(conversation_id), store.messages(conversation_id)

        self._storage.run(read).then(self._show)

    def show_rows(self, conversation_id: int, rows: list[MessageRow]) -> None:
        """The messages of a chat have changed in the store: if it is shown, show them."""
        if self._wanted == conversation_id:
            self._messages = rows
            self.messages_changed.emit(self.messages)
        self.list_changed.emit()

    def send(self, text: str) -> None:
        """Save the user's message, then have it answered."""
        if self.busy or self._status is None:
            return
        plan, parameters = self._plan(), setup_to_json(self.parameters.setup)
        saving = beginnings.question(self._conversation, text, self._model_name, plan, parameters)
        self._start(saving, plan, refused=text)

    def regenerate(self, message_id: int | None = None, plan: AnswerPlan | None = None) -> None:
        """Answer once more, in place of an answer (or of the last) and of what followed; both are kept.

        `plan` is how, if not as the chat is answered.
        """
        if not self._may_start():
            return
        assert self._conversation is not None
        plan = plan or self._plan()
        self._start(beginnings.other_answer(self._conversation, message_id, self._model_name, plan), plan)

    def edit_question(self, message_id: int, text: str) -> None:
        """Have another version of a user's message answered; the old one is kept, with what followed."""
        if not self._may_start():
            return
        assert self._conversation is not None
        plan, model = self._plan(), self._model_name
        self._start(beginnings.edited_question(self._conversation, message_id, text, model, plan), plan)

    def go_on(self, message_id: int) -> None:
        """Continue the last answer where it ends."""
        if not self._may_start():
            return
        assert self._conversation is not None
        self._storage.flush()
        self._start(beginnings.continuation(self._conversation, message_id), self._plan().alone)

    @Slot()
    def stop(self) -> None:
        """Stop the answer under way; what is there stays."""
        self._stop_asked = self._starting
        self._generation.stop()

    def end_now(self) -> None:
        """Save the answer under way as stopped, without waiting for the engine: the program closes."""
        self._generation.end_now()

    def rename(self, conversation_id: int, title: str) -> None:
        """Give a chat another title."""
        self._storage.run(ChatStore.rename, conversation_id, title).then(self._on_renamed)

    def _show(self, read: tuple[Conversation, list[MessageRow]]) -> None:
        conversation, rows = read
        if self._wanted != conversation.id:
            return  # another chat was asked for meanwhile
        self._conversation, self._messages = conversation, rows
        self.parameters.show(conversation)
        answer = self._generation.row
        self.opened.emit(conversation, [answer if answer and answer.id == row.id else row for row in rows])

    @property
    def _model_name(self) -> str:
        return "" if self._status is None else self._status.model_name

    def _plan(self) -> AnswerPlan:
        return plan_of(self.parameters.setup, self.defaults)

    def _may_start(self) -> bool:
        """Whether the chat that is shown can be answered now; says why if not."""
        if self._conversation is None:
            return False
        if self.busy:
            error = EngineError(
                tr("An answer is being written."), action=tr("Stop it with Escape, or wait for its end.")
            )
        elif self._status is None:
            error = EngineError(tr("There is no model that could answer."), action=tr("Load one first."))
        else:
            return True
        self.failed.emit(error)
        return False

    def _start(
        self,
        save: Beginning,
        plan: AnswerPlan,
        refused: str = "",
    ) -> None:
        """Save what is asked for, then ask; `refused` is the text to give back if that fails."""

        def refuse(error: StorageError) -> None:
            self._set_starting(False)
            if refused:
                self.refused.emit(refused)
            self.failed.emit(error)

        self._set_starting(True)
        self._storage.run(save).then(lambda saved: self._begin(*saved, plan), refuse)

    def _begin(self, conversation: Conversation, exchange: Exchange, plan: AnswerPlan) -> None:
        self._generation.prepare(exchange)
        begun_here = self._conversation is None and self._wanted is None
        if begun_here:
            self._conversation, self._wanted = conversation, conversation.id
            self.parameters.show(conversation)
            self.begun.emit(conversation)
        if self._wanted == conversation.id:
            before = [row for row in exchange.history if row.id != exchange.answer.id]  # if it is continued
            self._show_from_now([*before, exchange.answer])
        self._starting = False
        self.busy_changed.emit(True)
        self.list_changed.emit()
        self._generation.begin(prompt_of(plan.system_prompt, exchange.history), plan.params)
        if self._stop_asked:
            self.stop()

    def _show_from_now(self, rows: list[MessageRow]) -> None:
        """Take off what is shown no more, then add what is new at the end."""
        same = 0
        for before, now in zip(self._messages, rows, strict=False):
            if (before.id, before.state) != (now.id, now.state):
                break
            same += 1
        if same < len(self._messages):
            del self._messages[same:]
            self.messages_changed.emit(self.messages)
        for row in rows[same:]:
            self._append(row)

    def _append(self, row: MessageRow) -> None:
        self._messages.append(row)
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
        if self._messages and self._messages[-1].id == row.id:
            self._messages[-1] = row
        self.message_finished.emit(row)
        self.busy_changed.emit(self.busy)

    @Slot(object)
    def _on_row_changed(self, row: MessageRow) -> None:
        if self._messages and self._messages[-1].id == row.id:
            self._messages[-1] = row
            self.message_changed.emit(row)

    @Slot()
    def _on_idle(self) -> None:
        self.busy_changed.emit(self.busy)

    @Slot(int)
    def _on_versions_changed(self, conversation_id: int) -> None:
        def show(rows: list[MessageRow]) -> None:
            if not self.busy:  # it is told once more at the end
                self.show_rows(conversation_id, rows)

        self._storage.run(ChatStore.messages, conversation_id).then(show)

    def adopt(self, conversation: Conversation) -> None:
        """The chat was changed in the store: if it is the one that is shown, show it as it is now."""
        if self._conversation is not None and self._conversation.id == conversation.id:
            self._conversation = conversation
            self.parameters.show(conversation)
            self.renamed.emit(conversation)

    @Slot(object)
    def _on_renamed(self, conversation: Conversation) -> None:
        self.adopt(conversation)
        self.list_changed.emit()
