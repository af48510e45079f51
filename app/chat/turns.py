"""What is done with the turns of the chat that is shown, apart from answering: versions, edits, deletion."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.again import plan_again
from app.chat.not_now import while_answering
from app.chat.notices import Action
from app.chat.session import ChatSession
from app.i18n import tr
from app.storage import ChatStore, MessageRow
from app.storage.thread import StorageThread
from app.storage.trash import DeletedTurn


class TurnsController(QObject):
    """Turns what the user asks for at a message into operations of the session and of the store."""

    undo_offered = Signal(str, object)  # what was done, in words, and what takes it back
    edits_read = Signal(object)  # what messages of the chat are being changed to: {message id: text}

    def __init__(self, session: ChatSession, storage: StorageThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._storage = session, storage
        session.opened.connect(self._read_edits)
        session.messages_changed.connect(self._read_edits)

    def act(self, action: str, message_id: int) -> None:
        """Do what a button at a message asks for."""
        if action == Action.REGENERATE:
            self._session.regenerate(message_id)
        elif action == Action.AGAIN:
            self._answer_again(message_id)
        elif action == Action.CONTINUE:
            self._session.go_on(message_id)
        elif action == Action.SHOW_VERSION:
            self._show_version(message_id)
        elif action == Action.DELETE:
            self._delete(message_id)

    def _answer_again(self, message_id: int) -> None:
        row = next((row for row in self._session.messages if row.id == message_id), None)
        plan = None if row is None else plan_again(row, self._session.system_prompt)
        if plan is not None:
            self._session.regenerate(message_id, plan)

    def edit(self, message_id: int, text: str) -> None:
        """Save another version of a message: a question is answered anew, an answer stands as it is."""
        row = next((row for row in self._session.messages if row.id == message_id), None)
        if row is None:
            return
        self._storage.flush()  # once the edit is saved, nothing of it is to be kept any more
        if row.role == "user":
            self._session.edit_question(message_id, text)
        elif self._at_rest(row.conversation_id):
            self._show(row.conversation_id, ChatStore.edit_answer, message_id, text)

    def offer_edit_back(self, message_id: int, text: str) -> None:
        """The user has given up what a message was being changed to."""

        def take_up() -> None:
            self._storage.save_edit(message_id, text)
            self._read_edits()  # it is shown if its chat is, and else when that is opened

        self.undo_offered.emit(tr("Your change of a message was thrown away"), take_up)

    @Slot()
    def _read_edits(self) -> None:
        chat = self._session.conversation
        if chat is None:
            return

        def tell(edits: dict[int, str]) -> None:
            if self._session.conversation is not None and self._session.conversation.id == chat.id:
                self.edits_read.emit(edits)

        self._storage.flush()
        self._storage.run(ChatStore.edits, chat.id).then(tell)

    def _show_version(self, message_id: int) -> None:
        chat = self._session.conversation
        if chat is not None and self._at_rest(chat.id):
            self._show(chat.id, ChatStore.show_version, message_id)

    def restore(self, turn: DeletedTurn) -> None:
        """Bring a deleted turn back, also in a chat that is not shown."""
        if self._at_rest(turn.conversation_id):
            self._storage.run(ChatStore.restore_turn, turn.id).then(
                lambda restored: self._session.show_rows(*restored)
            )

    def _delete(self, message_id: int) -> None:
        chat = self._session.conversation
        if chat is None or not self._at_rest(chat.id):
            return

        def show(done: tuple[DeletedTurn, list[MessageRow]]) -> None:
            turn, left = done
            self._session.show_rows(chat.id, left)
            self.undo_offered.emit(tr("Deleted a question and its answer"), lambda: self.restore(turn))

        self._storage.flush()  # an edit of the turn is deleted, and brought back, with it
        self._storage.run(ChatStore.delete_turn, message_id).then(show)

    def _show(self, chat: int, operation: Callable[..., list[MessageRow]], *values: object) -> None:
        self._storage.run(operation, *values).then(lambda rows: self._session.show_rows(chat, rows))

    def _at_rest(self, chat: int) -> bool:
        """Whether no answer is being written to the chat; says so if one is."""
        if not self._session.busy or self._session.answering_id not in (None, chat):
            return True
        self._session.failed.emit(while_answering())
        return False
