"""The store's operations on the versions of a chat's messages: edit, switch, go on, delete a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.i18n import tr
from app.storage import messages as table
from app.storage.database import transaction
from app.storage.errors import StorageError
from app.storage.exchanges import Exchanges
from app.storage.rows import Exchange, MessageRow, MessageState
from engine.params import GenerationParams


@dataclass(frozen=True)
class DeletedTurn:
    """What brings a turn back: its rows, who followed them, and the last message that was shown."""

    conversation_id: int
    rows: tuple[Mapping[str, Any], ...]
    followers: Mapping[int, int | None]  # message id: its parent before
    end: int | None


class Versions(Exchanges):
    """Nothing that was written is lost by these: the other versions stay, but for deleted turns."""

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
            return self._answer(row.conversation_id, model, params, others)

    def edit_answer(self, message_id: int, text: str) -> list[MessageRow]:
        """Save another version of an answer, which then ends the chat; return the messages that are shown."""
        with transaction(self._db, self.path, tr("The answer could not be saved.")):
            row = self._message(message_id)
            table.deactivate_after(self._db, row.conversation_id, message_id - 1)
            self._append(row.conversation_id, row.role, text, model=row.model)
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

    def delete_turn(self, message_id: int) -> tuple[DeletedTurn, list[MessageRow]]:
        """Delete a question with its answers; what followed moves up. The second are the messages left."""
        with transaction(self._db, self.path, tr("The turn could not be deleted.")):
            chat = self._message(message_id).conversation_id
            tree = table.tree(self._db, chat)
            turn = tree.turn_of(message_id)
            followers = {
                follower: place for place in turn for follower in tree.children(place) if follower not in turn
            }
            shown = [node.id for node in tree.nodes.values() if node.active]
            rows = tuple(table.raw(self._db, place) for place in turn)
            deleted = DeletedTurn(chat, rows, followers, shown[-1] if shown else None)
            table.set_parents(self._db, dict.fromkeys(followers, tree.nodes[turn[0]].parent))
            table.remove(self._db, turn)
            self._touch(chat)
            left = [place for place in shown if place not in turn]
            after = table.tree(self._db, chat).newest_after(left[-1] if left else None)
            return deleted, self._show_path(chat, (*left, *after))

    def restore_turn(self, deleted: DeletedTurn) -> list[MessageRow]:
        """Bring a deleted turn back and show it; return the messages that are shown."""
        with transaction(self._db, self.path, tr("The turn could not be brought back.")):
            self._conversation(deleted.conversation_id)
            table.insert_raw(self._db, deleted.rows)
            table.set_parents(self._db, deleted.followers)
            self._touch(deleted.conversation_id)
            tree = table.tree(self._db, deleted.conversation_id)
            first = int(deleted.rows[0]["id"])
            path = tree.path_through(first)
            if deleted.end in tree.nodes and first in (through := tree.path_through(deleted.end or 0)):
                path = through
            return self._show_path(deleted.conversation_id, path)

    # Inside a transaction

    def _show_path(self, conversation_id: int, path: Sequence[int]) -> list[MessageRow]:
        table.activate(self._db, conversation_id, path)
        return table.of_conversation(self._db, conversation_id)

    def _message(self, message_id: int) -> MessageRow:
        row = table.find(self._db, message_id)
        if row is None:
            raise StorageError(tr("This message no longer exists."), action=tr("Open the chat again."))
        return row
