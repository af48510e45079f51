"""The store's operations on what is written but not sent: drafts, edits, messages that wait for their turn.

Edits are kept per message, the others per chat; None is the chat that is not begun yet. Attached files are in
the text (`app.attachments.form`).
"""

from __future__ import annotations

from app.attachments.form import BETWEEN, merged, parts_of
from app.i18n import tr
from app.storage import messages as table
from app.storage.base import Store
from app.storage.database import reading, transaction
from engine.text import clean_text


class Unsent(Store):
    """At most one draft and one waiting message for each chat."""

    def draft(self, conversation_id: int | None) -> str:
        """What was typed but not sent in a chat."""
        with reading(self.path, tr("The draft could not be read.")):
            return self._draft(conversation_id)

    def save_draft(self, conversation_id: int | None, text: str) -> None:
        """Keep what is typed; empty removes it. Not for a chat that is gone."""
        with transaction(self._db, self.path, tr("The draft could not be saved.")):
            if self._is_there(conversation_id):
                self._keep_draft(conversation_id, text)

    def next_message(self, conversation_id: int | None) -> str:
        """What waits to be sent in a chat."""
        with reading(self.path, tr("The waiting message could not be read.")):
            return self._unsent("next_message", conversation_id)

    def save_next(self, conversation_id: int | None, text: str) -> None:
        """Keep a message that waits; empty removes it."""
        with transaction(self._db, self.path, tr("The waiting message could not be saved.")):
            self._keep("next_message", conversation_id, text)

    def take_back_next(self, conversation_id: int | None) -> str:
        """Put a message that waits in front of the draft: nothing will send it. Returns the draft."""
        with transaction(self._db, self.path, tr("The waiting message could not be taken back.")):
            draft = self._draft(conversation_id)
            waiting = self._unsent("next_message", conversation_id)
            if waiting:
                draft = merged(waiting, draft)
                self._keep_draft(conversation_id, draft)
                self._keep("next_message", conversation_id, "")
            return draft

    def edits(self, conversation_id: int) -> dict[int, str]:
        """What the texts of a chat's messages are being changed to, by the messages' ids."""
        with reading(self.path, tr("The draft could not be read.")):
            query = (
                "SELECT e.message_id, e.content FROM edit AS e JOIN message AS m ON m.id = e.message_id"
                " WHERE m.conversation_id = ?"
            )
            return {row[0]: str(row[1]) for row in self._db.execute(query, (conversation_id,))}

    def save_edit(self, message_id: int, text: str) -> None:
        """Keep what a message's text is being changed to; empty ends that. Not for one that is gone."""
        with transaction(self._db, self.path, tr("The draft could not be saved.")):
            table.end_edit(self._db, message_id)
            if text:
                insert = "INSERT INTO edit (message_id, content) SELECT id, ? FROM message WHERE id = ?"
                self._db.execute(insert, (clean_text(text), message_id))

    # Inside a transaction

    def _is_there(self, conversation_id: int | None) -> bool:
        query = "SELECT ? IS NULL OR EXISTS (SELECT 1 FROM conversation WHERE id = ?)"
        return bool(self._db.execute(query, (conversation_id, conversation_id)).fetchone()[0])

    def _draft(self, conversation_id: int | None) -> str:
        parts = (self._unsent(table, conversation_id) for table in ("draft_files", "draft"))
        return BETWEEN.join(part for part in parts if part)

    def _keep_draft(self, conversation_id: int | None, text: str) -> None:
        files, typed = parts_of(clean_text(text))
        self._keep("draft", conversation_id, typed)
        query = "SELECT 1 FROM draft_files WHERE conversation_id IS ? AND content = ?"
        if not files or self._db.execute(query, (conversation_id, files)).fetchone() is None:
            self._keep("draft_files", conversation_id, files)

    def _unsent(self, table: str, conversation_id: int | None) -> str:
        query = f"SELECT content FROM {table} WHERE conversation_id IS ?"
        row = self._db.execute(query, (conversation_id,)).fetchone()
        return "" if row is None else str(row["content"])

    def _keep(self, table: str, conversation_id: int | None, text: str) -> None:
        self._db.execute(f"DELETE FROM {table} WHERE conversation_id IS ?", (conversation_id,))
        if text:
            insert = f"INSERT INTO {table} (conversation_id, content) VALUES (?, ?)"
            self._db.execute(insert, (conversation_id, clean_text(text)))
