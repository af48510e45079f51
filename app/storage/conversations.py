"""The store's operations on whole chats: begin, list, search, name, pin, put away, copy, delete."""

from __future__ import annotations

from app.i18n import tr
from app.storage import index
from app.storage.base import Store
from app.storage.copying import copy_conversation
from app.storage.database import reading, transaction
from app.storage.errors import DamagedError, StorageError
from app.storage.listing import search_conversations
from app.storage.rows import Conversation, JsonObject, Summary, dump_json, to_millis
from app.storage.search_query import Query, parse
from app.text import one_line
from engine.text import clean_text


class Conversations(Store):
    """Everything that does not look into a chat."""

    def create_conversation(
        self,
        title: str = "",
        model: str = "",
        system_prompt: str = "",
        parameters: JsonObject | None = None,
    ) -> Conversation:
        """Begin a chat; an empty title becomes “New chat”."""
        now = to_millis(self._clock())
        name = one_line(title) or tr("New chat")
        with transaction(self._db, self.path, tr("The new chat could not be saved.")):
            cursor = self._db.execute(
                "INSERT INTO conversation"
                " (title, model, system_prompt, parameters, created, updated, activity)"
                " VALUES (?, ?, ?, ?, ?, ?, (SELECT ifnull(max(activity), 0) + 1 FROM conversation))",
                (name, clean_text(model), clean_text(system_prompt), dump_json(parameters), now, now),
            )
            return self._conversation(cursor.lastrowid or 0)

    def conversation(self, conversation_id: int) -> Conversation:
        """One chat, also a deleted one that can still be brought back; `StorageError` if there is none."""
        with reading(self.path, tr("The chat could not be read.")):
            return self._conversation(conversation_id)

    def present_conversation(self, conversation_id: int) -> Conversation:
        """One chat; `StorageError` also if it is deleted."""
        chat = self.conversation(conversation_id)
        if chat.deleted is not None:
            raise StorageError(tr("This chat was deleted."), action=tr("Choose another chat."))
        return chat

    def conversations(self, search: str | None = None, *, archived: bool | None = False) -> list[Summary]:
        """The chats, pinned ones first, then the latest change.

        With `archived`, those put away instead; with None for it, both kinds.

        With `search` (see `search_query`), the chats of both kinds that have it in their title or a text.
        """
        query = parse(search or "")
        if not query.terms:
            with reading(self.path, tr("The list of chats could not be read.")):
                return self._listed.read(self._db, archived=archived)
        try:
            return self._search(query)
        except DamagedError:  # of all that a search reads, only the index is not checked at the start
            with transaction(self._db, self.path, tr("The index for searching could not be renewed.")):
                index.rebuild(self._db)
            return self._search(query)

    def index_some(self) -> bool:
        """Bring the search index a step closer to the messages; whether more is left to do."""
        what = tr("The index for searching could not be written.")
        with reading(self.path, what):
            if not index.is_behind(self._db):
                return False
        with transaction(self._db, self.path, what):
            index.catch_up(self._db)
        return True

    def rename(self, conversation_id: int, title: str) -> Conversation:
        """Give a chat another title (its place in the list stays)."""
        name = one_line(title)
        if not name:
            raise StorageError(tr("A chat needs a name."), action=tr("Type at least one character."))
        return self._set(conversation_id, "title", name)

    def rename_unless_renamed(self, before: Conversation, title: str) -> Conversation | None:
        """Give a chat another title if it still has the one in `before`; None if not, or without a title."""
        name = one_line(title)
        if not name:
            return None
        with transaction(self._db, self.path, tr("The chat could not be changed.")):
            update = "UPDATE conversation SET title = ? WHERE id = ? AND title = ? AND deleted IS NULL"
            changed = self._db.execute(update, (name, before.id, before.title)).rowcount
            return self._conversation(before.id) if changed else None

    def set_parameters(
        self, conversation_id: int, system_prompt: str, parameters: JsonObject | None
    ) -> Conversation:
        """Have a chat answered in another way from now on (its place in the list stays)."""
        with transaction(self._db, self.path, tr("The parameters of the chat could not be saved.")):
            self._db.execute(
                "UPDATE conversation SET system_prompt = ?, parameters = ? WHERE id = ?",
                (clean_text(system_prompt), dump_json(parameters), conversation_id),
            )
            return self._conversation(conversation_id)

    def delete(self, conversation_id: int) -> Conversation:
        """Take a chat off the list; `undelete` brings it back until it is purged."""
        return self._set(conversation_id, "deleted", to_millis(self._clock()))

    def undelete(self, conversation_id: int) -> Conversation:
        """Bring a deleted chat back, with everything in it."""
        return self._set(conversation_id, "deleted", None)

    def pin(self, conversation_id: int, pinned: bool) -> Conversation:
        """Keep a chat at the top of the list, or no longer."""
        return self._set(conversation_id, "pinned", int(pinned))

    def archive(self, conversation_id: int, archived: bool) -> Conversation:
        """Put a chat away from the list, or back onto it; searches find it in either place."""
        return self._set(conversation_id, "archived", int(archived))

    def archived_count(self) -> int:
        """How many chats are put away."""
        with reading(self.path, tr("The list of chats could not be read.")):
            query = "SELECT count(*) FROM conversation WHERE archived = 1 AND deleted IS NULL"
            return int(self._db.execute(query).fetchone()[0])

    def duplicate(self, conversation_id: int) -> Conversation:
        """Begin a chat with everything that another holds, alternatives included; the latest in the list."""
        with transaction(self._db, self.path, tr("The chat could not be copied.")):
            chat = self._conversation(conversation_id)
            title = tr("{title} (copy)", title=chat.title)
            copy = copy_conversation(self._db, conversation_id, title, to_millis(self._clock()))
            self._touch(copy)
            return self._conversation(copy)

    def _search(self, query: Query) -> list[Summary]:
        while self.index_some():
            pass
        with reading(self.path, tr("The chats could not be searched.")):
            return search_conversations(self._db, query, self._titles)
