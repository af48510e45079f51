"""The store's operations on the versions of a chat's messages: edit, switch, go on."""

from __future__ import annotations

from collections.abc import Sequence

from app.i18n import tr
from app.storage import messages as table
from app.storage.database import transaction
from app.storage.errors import StorageError
from app.storage.exchanges import Exchanges
from app.storage.rows import Exchange, MessageRow, MessageState
from engine.params import GenerationParams


class Versions(Exchanges):
    """Nothing that was written is lost by these: the other versions stay."""

    def begin_edited(
        self,
        message_id: int,
        text: str,
        *,
        model: str = "",
        params: GenerationParams | None = None,
        others: Sequence[GenerationParams] = (),
    ) -> Exchange:
        """Save another version of a user's message, and an empty answer to it, in place of what followed."""
        with transaction(self._db, self.path, tr("Your message could not be saved.")):
            row = self._message(message_id)
            table.deactivate_after(self._db, row.conversation_id, message_id - 1)
            self._append(row.conversation_id, row.role, text)
            table.end_edit(self._db, message_id)
            return self._answer(row.conversation_id, model, params, others)

    def edit_answer(self, message_id: int, text: str) -> list[MessageRow]:
        """Save another version of an answer, which then ends the chat; return the messages that are shown."""
        with transaction(self._db, self.path, tr("The answer could not be saved.")):
            row = self._message(message_id)
            table.deactivate_after(self._db, row.conversation_id, message_id - 1)
            self._append(row.conversation_id, row.role, text, model=row.model)
            table.end_edit(self._db, message_id)
            return table.of_conversation(self._db, row.conversation_id)

    def begin_other_answer(
        self,
        message_id: int,
        *,
        model: str = "",
        params: GenerationParams | None = None,
        others: Sequence[GenerationParams] = (),
    ) -> Exchange:
        """Begin another version of an answer, in place of it and of what followed."""
        with transaction(self._db, self.path, tr("The new answer could not be started.")):
            row = self._message(message_id)
            table.deactivate_after(self._db, row.conversation_id, message_id - 1)
            return self._answer(row.conversation_id, model, params, others)

    def begin_continuation(self, message_id: int) -> Exchange:
        """Go on with the last answer of a chat: it is unfinished again, with the text that it has.

        `Exchange.history` ends with the answer itself as it was.
        """
        with transaction(self._db, self.path, tr("The answer could not be continued.")):
            row = self._message(message_id)
            history = table.of_conversation(self._db, row.conversation_id)
            if not history or history[-1].id != message_id or row.state is MessageState.STREAMING:
                raise StorageError(
                    tr("The answer could not be continued."),
                    why=tr("It is no longer the last one of the chat, or is being written."),
                    action=tr("Open the chat again."),
                )
            table.reopen(self._db, message_id, self._run.name)
            self._touch(row.conversation_id)
            return Exchange(tuple(history), table.of_conversation(self._db, row.conversation_id)[-1])

    def show_version(self, message_id: int) -> list[MessageRow]:
        """Show a version of a message and what followed it last; return the messages that are shown."""
        with transaction(self._db, self.path, tr("The other version could not be shown.")):
            chat = self._message(message_id).conversation_id
            return self._show_path(chat, table.tree(self._db, chat).path_through(message_id))

    # Inside a transaction

    def _show_path(self, conversation_id: int, path: Sequence[int]) -> list[MessageRow]:
        table.activate(self._db, conversation_id, path)
        return table.of_conversation(self._db, conversation_id)

    def _message(self, message_id: int) -> MessageRow:
        row = table.find(self._db, message_id)
        if row is None:
            raise StorageError(tr("This message no longer exists."), action=tr("Open the chat again."))
        return row
