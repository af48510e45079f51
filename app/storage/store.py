"""The saved chats: every operation on conversations and their messages.

A `ChatStore` belongs to the thread that opened it (the window goes through `StorageThread`). Each method is
one transaction: when it returns, its change is on the disk; when it raises `StorageError`, nothing changed.
"""

from __future__ import annotations

from app.i18n import tr
from app.storage.base import utc_now
from app.storage.conversations import KEEP_DELETED, Conversations
from app.storage.database import reading, transaction
from app.storage.versions import Versions
from engine.text import clean_text

__all__ = ["KEEP_DELETED", "ChatStore", "utc_now"]


class ChatStore(Conversations, Versions):
    """All chats in one SQLite file. Made by `opening.open_store`, which checks and migrates the file."""

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
