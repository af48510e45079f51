"""Chats that come from a file: as they are before they have a place in the database, and putting them there.

The functions take the store that they work on first, so that `StorageThread.run` can call them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.i18n import tr
from app.storage.database import reading, transaction
from app.storage.rows import Conversation, JsonObject, MessageState, dump_json, to_millis
from app.storage.store import ChatStore
from app.text import one_line
from engine.params import Role
from engine.text import clean_text


@dataclass(frozen=True)
class IncomingMessage:
    """One message. `parent` is the place, in the chat's list, of the earlier message that it followed.

    `seen_from` is the place of the first one that it was written from, where that is not the chat's first.
    """

    role: Role
    content: str
    created: datetime
    parent: int | None = None
    active: bool = True
    state: MessageState = MessageState.COMPLETE
    finished: datetime | None = None
    model: str = ""
    reason: str = ""
    note: str = ""
    params: JsonObject | None = None
    stats: JsonObject | None = None
    seen_from: int | None = None


@dataclass(frozen=True)
class IncomingChat:
    """One chat with all versions of its messages, parents before what follows them."""

    title: str
    created: datetime
    updated: datetime
    model: str = ""
    system_prompt: str = ""
    pinned: bool = False
    archived: bool = False
    messages: tuple[IncomingMessage, ...] = ()
    parameters: JsonObject | None = None


def insert_chat(store: ChatStore, chat: IncomingChat) -> Conversation:
    """Save a chat with all its messages, at the top of the list: everything, or nothing."""
    with transaction(store._db, store.path, tr("The chat “{title}” could not be saved.", title=chat.title)):
        cursor = store._db.execute(
            "INSERT INTO conversation (title, model, system_prompt, created, updated, pinned, archived,"
            " parameters, activity)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT ifnull(max(activity), 0) + 1 FROM conversation))",
            (
                one_line(chat.title) or tr("New chat"),
                clean_text(chat.model),
                clean_text(chat.system_prompt),
                to_millis(chat.created),
                to_millis(chat.updated),
                chat.pinned,
                chat.archived,
                dump_json(chat.parameters),
            ),
        )
        conversation_id = cursor.lastrowid or 0
        ids: list[int] = []
        for message in chat.messages:
            parent = None if message.parent is None else ids[message.parent]
            seen_from = None if message.seen_from is None else ids[message.seen_from]
            ids.append(_insert_message(store, conversation_id, parent, seen_from, message))
        return store._conversation(conversation_id)


def twins(store: ChatStore, chats: Sequence[IncomingChat]) -> list[bool]:
    """For each of `chats` whether it is in the list already: begun in the same millisecond, the same way.

    A title may have been changed since, and the chat gone on; its beginning stays.
    """
    with reading(store.path, tr("The list of chats could not be read.")):
        query = "SELECT id, created FROM conversation WHERE deleted IS NULL"
        known: dict[int, list[int]] = {}
        for row in store._db.execute(query):
            known.setdefault(row["created"], []).append(row["id"])
        return [_is_known(store, chat, known.get(to_millis(chat.created), ())) for chat in chats]


def _is_known(store: ChatStore, chat: IncomingChat, candidates: Iterable[int]) -> bool:
    begins = {clean_text(message.content) for message in chat.messages if message.parent is None}
    query = "SELECT content FROM message WHERE conversation_id = ? AND parent IS NULL"
    for conversation_id in candidates:
        there = {row["content"] for row in store._db.execute(query, (conversation_id,))}
        if begins & there or begins == there:
            return True
    return False


def _insert_message(
    store: ChatStore,
    conversation_id: int,
    parent: int | None,
    seen_from: int | None,
    message: IncomingMessage,
) -> int:
    cursor = store._db.execute(
        "INSERT INTO message (conversation_id, parent, active, role, content, state, created, finished,"
        " model, reason, note, params, stats, seen_from)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            conversation_id,
            parent,
            message.active,
            message.role,
            clean_text(message.content),
            message.state,
            to_millis(message.created),
            None if message.finished is None else to_millis(message.finished),
            clean_text(message.model),
            clean_text(message.reason),
            clean_text(message.note),
            dump_json(message.params),
            dump_json(message.stats),
            seen_from,
        ),
    )
    return cursor.lastrowid or 0
