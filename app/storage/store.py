"""The saved chats: every operation on conversations and their messages.

A `ChatStore` belongs to the thread that opened it (the window goes through `StorageThread`). Each method is
one transaction: when it returns, its change is on the disk; when it raises `StorageError`, nothing changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.i18n import tr
from app.storage import index
from app.storage import messages as table
from app.storage.database import reading, transaction
from app.storage.errors import DamagedError, StorageError
from app.storage.figures import params_to_json, stats_to_json
from app.storage.listing import list_conversations, search_conversations
from app.storage.rows import (
    Conversation,
    Exchange,
    MessageRow,
    MessageState,
    Summary,
    conversation_from,
    to_millis,
)
from app.storage.runs import Run
from app.storage.search_query import Query, parse
from app.text import one_line
from engine.events import FinishReason, GenerationStats
from engine.params import GenerationParams, Role
from engine.text import clean_text

KEEP_DELETED = timedelta(days=7)  # how long a deleted chat can be brought back


def utc_now() -> datetime:
    """The time that is saved with a change."""
    return datetime.now(UTC)


class ChatStore:
    """All chats in one SQLite file. Made by `opening.open_store`, which checks and migrates the file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        run: Run,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._db = connection
        self._run = run
        self._clock = clock
        self.path = path

    def close(self) -> None:
        """Write the log back into the file and let go of it. Harmless when repeated."""
        self._db.close()
        self._run.release()

    # Conversations

    def create_conversation(self, title: str = "", model: str = "", system_prompt: str = "") -> Conversation:
        """Begin a chat; an empty title becomes “New chat”."""
        now = to_millis(self._clock())
        name = one_line(title) or tr("New chat")
        with transaction(self._db, self.path, tr("The new chat could not be saved.")):
            cursor = self._db.execute(
                "INSERT INTO conversation (title, model, system_prompt, created, updated, activity)"
                " VALUES (?, ?, ?, ?, ?, (SELECT ifnull(max(activity), 0) + 1 FROM conversation))",
                (name, model, clean_text(system_prompt), now, now),
            )
            return self._conversation(cursor.lastrowid or 0)

    def conversation(self, conversation_id: int) -> Conversation:
        """One chat, also a deleted one that can still be brought back; `StorageError` if there is none."""
        with reading(self.path, tr("The chat could not be read.")):
            return self._conversation(conversation_id)

    def conversations(self, search: str | None = None, *, archived: bool = False) -> list[Summary]:
        """The chats, pinned ones first, then the latest change; with `archived`, those put away instead.

        With `search` (see `search_query`), the chats of both kinds that have it in their title or a text.
        """
        query = parse(search or "")
        if not query.terms:
            with reading(self.path, tr("The list of chats could not be read.")):
                return list_conversations(self._db, archived=archived)
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

    def _search(self, query: Query) -> list[Summary]:
        while self.index_some():
            pass
        with reading(self.path, tr("The chats could not be searched.")):
            return search_conversations(self._db, query)

    def rename(self, conversation_id: int, title: str) -> Conversation:
        """Give a chat another title (its place in the list stays)."""
        name = one_line(title)
        if not name:
            raise StorageError(tr("A chat needs a name."), action=tr("Type at least one character."))
        return self._set(conversation_id, "title", name)

    def delete(self, conversation_id: int) -> Conversation:
        """Take a chat off the list; `undelete` brings it back until it is purged."""
        return self._set(conversation_id, "deleted", to_millis(self._clock()))

    def undelete(self, conversation_id: int) -> Conversation:
        """Bring a deleted chat back, with everything in it."""
        return self._set(conversation_id, "deleted", None)

    def purge(self, keep: timedelta = KEEP_DELETED) -> int:
        """Remove for good what was deleted more than `keep` ago; return the number of chats."""
        before = to_millis(self._clock() - keep)
        with transaction(self._db, self.path, tr("Deleted chats could not be removed.")):
            purged = self._db.execute("DELETE FROM conversation WHERE deleted <= ?", (before,)).rowcount
            if purged:
                index.forget_deleted(self._db)
            return purged

    # Messages

    def messages(self, conversation_id: int, *, all_versions: bool = False) -> list[MessageRow]:
        """A chat's messages in order; `all_versions` adds the answers that were regenerated or taken back."""
        with reading(self.path, tr("The messages could not be read.")):
            return table.of_conversation(self._db, conversation_id, all_versions=all_versions)

    def add_message(
        self,
        conversation_id: int,
        role: Role,
        content: str,
        *,
        state: MessageState = MessageState.COMPLETE,
        model: str = "",
        params: GenerationParams | None = None,
    ) -> MessageRow:
        """Append a message. It is on the disk when this returns."""
        with transaction(self._db, self.path, tr("The message could not be saved.")):
            return self._append(conversation_id, role, content, state, model, params)

    def begin_exchange(
        self, conversation_id: int, text: str, *, model: str = "", params: GenerationParams | None = None
    ) -> Exchange:
        """Save what the user sent together with an empty answer to fill: both, or neither."""
        with transaction(self._db, self.path, tr("Your message could not be saved.")):
            self._append(conversation_id, "user", text)
            return self._answer(conversation_id, model, params)

    def begin_regeneration(
        self, conversation_id: int, *, model: str = "", params: GenerationParams | None = None
    ) -> Exchange:
        """Begin another answer to the last user message; the earlier answer is kept as an alternative."""
        with transaction(self._db, self.path, tr("The new answer could not be started.")):
            last = self._last_user_message(conversation_id)
            table.deactivate_after(self._db, conversation_id, last.id)
            return self._answer(conversation_id, model, params)

    def delete_last_exchange(self, conversation_id: int) -> MessageRow:
        """Take the last user message and its answer off the chat (kept, inactive); return the former."""
        with transaction(self._db, self.path, tr("The last message could not be removed.")):
            last = self._last_user_message(conversation_id)
            table.deactivate_after(self._db, conversation_id, last.id - 1)
            self._touch(conversation_id)
            return last

    def update_partial(self, message_id: int, content: str) -> None:
        """Save the text so far of an answer that is being generated; `StorageError` if it is not."""
        with transaction(self._db, self.path, tr("The answer so far could not be saved.")):
            if not table.update_unfinished(self._db, message_id, clean_text(content)):
                raise _already_finished()

    def finish_message(
        self,
        message_id: int,
        content: str,
        state: MessageState = MessageState.COMPLETE,
        *,
        stats: GenerationStats | None = None,
        reason: FinishReason | None = None,
        note: str = "",
    ) -> MessageRow:
        """Save the whole answer and how it ended."""
        figures = None if stats is None else stats_to_json(stats)
        with transaction(self._db, self.path, tr("The answer could not be saved.")):
            row = table.finish(
                self._db,
                message_id,
                clean_text(content),
                state,
                finished=to_millis(self._clock()),
                stats=figures,
                reason=reason or "",
                note=clean_text(note),
            )
            if row is None:
                raise _already_finished()
            self._touch(row.conversation_id)
            return row

    def recover_interrupted(self) -> list[MessageRow]:
        """Mark the answers that a program left unfinished when it died; not those of a running one."""
        with transaction(self._db, self.path, tr("Interrupted answers could not be marked.")):
            return table.interrupt(self._db, self._dead_runs(table.streaming_runs(self._db)))

    # Drafts

    def draft(self, conversation_id: int | None) -> str:
        """What was typed but not sent in a chat (None: in the chat that is not begun yet)."""
        with reading(self.path, tr("The draft could not be read.")):
            query = "SELECT content FROM draft WHERE conversation_id IS ?"
            row = self._db.execute(query, (conversation_id,)).fetchone()
        return "" if row is None else str(row["content"])

    def save_draft(self, conversation_id: int | None, text: str) -> None:
        """Keep what is typed; empty removes it."""
        with transaction(self._db, self.path, tr("The draft could not be saved.")):
            self._db.execute("DELETE FROM draft WHERE conversation_id IS ?", (conversation_id,))
            if text:
                values = (conversation_id, clean_text(text))
                self._db.execute("INSERT INTO draft (conversation_id, content) VALUES (?, ?)", values)

    # Inside a transaction

    def _conversation(self, conversation_id: int) -> Conversation:
        query = "SELECT * FROM conversation WHERE id = ?"
        row = self._db.execute(query, (conversation_id,)).fetchone()
        if row is None:
            raise StorageError(tr("This chat no longer exists."), action=tr("Choose another chat."))
        return conversation_from(row)

    def _set(self, conversation_id: int, column: str, value: object) -> Conversation:
        with transaction(self._db, self.path, tr("The chat could not be changed.")):
            update = f"UPDATE conversation SET {column} = ? WHERE id = ?"
            self._db.execute(update, (value, conversation_id))
            return self._conversation(conversation_id)

    def _touch(self, conversation_id: int) -> None:
        self._db.execute(
            "UPDATE conversation SET updated = ?, activity ="
            " (SELECT max(activity) + 1 FROM conversation) WHERE id = ?",
            (to_millis(self._clock()), conversation_id),
        )

    def _append(
        self,
        conversation_id: int,
        role: Role,
        content: str,
        state: MessageState = MessageState.COMPLETE,
        model: str = "",
        params: GenerationParams | None = None,
    ) -> MessageRow:
        self._conversation(conversation_id)
        self._touch(conversation_id)
        return table.append(
            self._db,
            conversation_id,
            role,
            clean_text(content),
            state,
            created=to_millis(self._clock()),
            model=model,
            params=None if params is None else params_to_json(params),
            run=self._run.name if state is MessageState.STREAMING else None,
        )

    def _answer(self, conversation_id: int, model: str, params: GenerationParams | None) -> Exchange:
        history = table.of_conversation(self._db, conversation_id)
        streaming = MessageState.STREAMING
        answer = self._append(conversation_id, "assistant", "", streaming, model, params)
        return Exchange(tuple(history), answer)

    def _last_user_message(self, conversation_id: int) -> MessageRow:
        self._conversation(conversation_id)
        row = table.last_user_message(self._db, conversation_id)
        if row is None:
            raise StorageError(tr("There is no message to answer yet."), action=tr("Write one first."))
        return row

    def _dead_runs(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self._run.is_alive(name)]


def _already_finished() -> StorageError:
    return StorageError(
        tr("The answer could not be saved."),
        why=tr("It is no longer in the list of chats, or was finished before."),
        action=tr("Copy the text if you need it, then open the chat again."),
    )
