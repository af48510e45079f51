"""Databases to be damaged, and what is rescued from them, for the tests."""

from pathlib import Path
from typing import Any

from app.storage import ChatStore, open_store

PAGE = 4096


def filled(database: Path, clock: Any, chats: int = 12, messages: int = 30) -> dict[int, str]:
    """A database of some hundred pages; the messages' texts by id."""
    store = open_store(database, clock).store
    store._db.execute("PRAGMA synchronous = OFF")  # nothing is killed here: hundreds of fsyncs for nothing
    texts: dict[int, str] = {}
    for number in range(chats):
        chat = store.create_conversation(f"chat {number}")
        for _ in range(messages):
            row = store.add_message(chat.id, "user", f"message {len(texts)} " + "x" * 900)
            texts[row.id] = row.content
    store.save_draft(None, "unsent")
    store.save_next(chat.id, "waits")
    store.save_edit(1, "changed")
    store.delete_turn(store.add_message(chat.id, "user", "in the trash").id)
    store.close()
    return texts


def rescued(store: ChatStore) -> dict[int, str]:
    return {
        row.id: row.content
        for line in store.conversations()
        for row in store.messages(line.conversation.id, all_versions=True)
    }


def set_aside(database: Path) -> Path:
    (aside,) = (
        path for path in database.parent.glob("*.damaged-*") if not path.name.endswith(("-wal", "-shm"))
    )
    return aside


def usable(store: ChatStore) -> bool:
    chat = store.create_conversation("after")
    store.add_message(chat.id, "user", "hello")
    return [row.content for row in store.messages(chat.id)] == ["hello"]


def overwrite(database: Path, offset: int, data: bytes) -> bytes:
    content = bytearray(database.read_bytes())
    content[offset : offset + len(data)] = data
    database.write_bytes(content)
    return bytes(content)
