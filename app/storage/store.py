"""The saved chats: every operation on conversations and their messages.

A `ChatStore` belongs to the thread that opened it (the window goes through `StorageThread`). Each method is
one transaction: when it returns, its change is on the disk; when it raises `StorageError`, nothing changed.
"""

from __future__ import annotations

from app.storage.base import utc_now
from app.storage.conversations import Conversations
from app.storage.together import Together
from app.storage.trash import KEEP_DELETED, Trash
from app.storage.unsent import Unsent

__all__ = ["KEEP_DELETED", "ChatStore", "utc_now"]


class ChatStore(Conversations, Together, Trash, Unsent):
    """All chats in one SQLite file. Made by `opening.open_store`, which checks and migrates the file."""
