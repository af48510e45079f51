"""What the store hands out: conversations and messages as frozen values."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from engine.params import Message, Role
from engine.text import clean_text

JsonObject = Mapping[str, Any]


class MessageState(StrEnum):
    """How far a message got."""

    COMPLETE = "complete"
    STREAMING = "streaming"  # being generated now, by a running program
    INTERRUPTED = "interrupted"  # the program ended before the answer did; what is there was saved in time
    STOPPED = "stopped"  # the user stopped it
    ERROR = "error"  # the generation failed; `note` says why


@dataclass(frozen=True)
class Conversation:
    """One chat. Times are in UTC; `deleted` is set while a deletion can still be undone.

    `pinned` chats stand first in the list; `archived` ones are listed apart. `parameters` is how it is
    answered (see `app.presets.format`), None where it follows the default preset.
    """

    id: int
    title: str
    model: str
    system_prompt: str
    created: datetime
    updated: datetime
    deleted: datetime | None = None
    pinned: bool = False
    archived: bool = False
    parameters: JsonObject | None = None


@dataclass(frozen=True)
class Summary:
    """A line of the chat list: `preview` is the latest text, or the passage that a search found.

    `place` is the message that the passage is in; None where a search found the title alone.
    """

    conversation: Conversation
    preview: str
    messages: int
    place: int | None = None


@dataclass(frozen=True)
class MessageRow:
    """One message as saved.

    `parent` is the message it followed; messages with the same parent are alternatives, of which one is
    `active`; `versions` are the ids of them all, where the store was asked for a whole chat. `params` (how it
    was asked for) and `stats` (the figures) are JSON objects, see `figures`; `reason` is why the answer
    ended (`FinishReason`), `note` a sentence about it for the user. `seen_from` is the first message that the
    model read for an answer, where it did not read the chat from its beginning; it may be deleted since.
    """

    id: int
    conversation_id: int
    role: Role
    content: str
    state: MessageState
    created: datetime
    finished: datetime | None = None
    parent: int | None = None
    active: bool = True
    model: str = ""
    reason: str = ""
    note: str = ""
    params: JsonObject | None = None
    stats: JsonObject | None = None
    versions: tuple[int, ...] = ()
    seen_from: int | None = None

    def to_message(self) -> Message:
        """The turn as the engine takes it."""
        return Message(self.role, self.content)


@dataclass(frozen=True)
class Exchange:
    """What a generation starts from: the messages up to the user's last one, and the answer to fill.

    `others` are to be filled as well: further versions of the answer, which are not shown.
    """

    history: tuple[MessageRow, ...]
    answer: MessageRow
    others: tuple[MessageRow, ...] = ()


def to_millis(moment: datetime) -> int:
    """Milliseconds since 1970 in UTC, as the database keeps times. (A clock that stands before has 1970.)"""
    return max(0, round(moment.timestamp() * 1000))


def from_millis(millis: int) -> datetime:
    """The inverse of `to_millis`."""
    return datetime.fromtimestamp(millis / 1000, UTC)


def conversation_from(row: sqlite3.Row) -> Conversation:
    """A row of the table `conversation`."""
    deleted = row["deleted"]
    return Conversation(
        id=row["id"],
        title=row["title"],
        model=row["model"],
        system_prompt=row["system_prompt"],
        created=from_millis(row["created"]),
        updated=from_millis(row["updated"]),
        deleted=None if deleted is None else from_millis(deleted),
        pinned=bool(row["pinned"]),
        archived=bool(row["archived"]),
        parameters=_load(row["parameters"]),
    )


def message_from(row: sqlite3.Row, versions: tuple[int, ...] = ()) -> MessageRow:
    """A row of the table `message`."""
    finished = row["finished"]
    return MessageRow(
        id=row["id"],
        conversation_id=row["conversation_id"],
        role=row["role"],
        content=row["content"],
        state=MessageState(row["state"]),
        created=from_millis(row["created"]),
        finished=None if finished is None else from_millis(finished),
        parent=row["parent"],
        active=bool(row["active"]),
        model=row["model"],
        reason=row["reason"],
        note=row["note"],
        params=_load(row["params"]),
        stats=_load(row["stats"]),
        versions=versions,
        seen_from=row["seen_from"],
    )


def dump_json(value: JsonObject | None) -> str | None:
    """A JSON object as stored; NULL for none."""
    if value is None:
        return None
    return clean_text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def _load(text: str | None) -> JsonObject | None:
    """A stored JSON object; None where there is none, or damage has left something else."""
    try:
        value = None if text is None else json.loads(text)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, dict) else None
