"""The saved chats: SQLite underneath, plain values above. The window uses `StorageThread`."""

from app.storage.errors import DamagedError, Notice, StorageError
from app.storage.opening import Opened, open_in_memory, open_store
from app.storage.rows import Conversation, Exchange, MessageRow, MessageState, Summary
from app.storage.store import ChatStore

__all__ = [
    "ChatStore",
    "Conversation",
    "DamagedError",
    "Exchange",
    "MessageRow",
    "MessageState",
    "Notice",
    "Opened",
    "StorageError",
    "Summary",
    "open_in_memory",
    "open_store",
]
