"""A conversation as JSON, version 2: everything that is saved about it, so that it can be read back.

The format, and what changed since version 1, is described in docs/export-format.md; `app.importing` reads it.
Nothing in a document depends on the database it came from: messages are numbered as they stand in it, so an
imported chat gives the same document again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from app.export.options import ExportOptions
from app.storage.rows import Conversation, MessageRow, MessageState

FORMAT = "fiddler-chat-conversation"
VERSION = 2


def to_json(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    exported: datetime,
    options: ExportOptions | None = None,
) -> str:
    """The document, with a newline at its end. `messages` in order, with all versions."""
    chosen = options or ExportOptions()
    document = {
        "format": FORMAT,
        "version": VERSION,
        "exported": timestamp(exported),
        "includes": dataclasses.asdict(chosen),
        "conversation": _conversation(conversation, chosen),
        "messages": _messages(chosen.chosen(messages), chosen),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def timestamp(moment: datetime) -> str:
    """`moment` in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _conversation(conversation: Conversation, options: ExportOptions) -> dict[str, Any]:
    return {
        "title": conversation.title,
        "model": conversation.model,
        "system_prompt": conversation.system_prompt if options.system_prompt else "",
        "created": timestamp(conversation.created),
        "updated": timestamp(conversation.updated),
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "parameters": conversation.parameters if options.settings else None,
    }


def _messages(rows: Sequence[MessageRow], options: ExportOptions) -> list[dict[str, Any]]:
    numbers: dict[int | None, int] = {}
    messages = []
    for row in rows:
        # A message that is left out cannot be followed.
        message = _message(row, len(numbers) + 1, numbers.get(row.parent), options)
        messages.append(message | {"seen_from": _seen_from(row, numbers)})
        numbers[row.id] = len(numbers) + 1
    return messages


def _seen_from(row: MessageRow, numbers: Mapping[int | None, int]) -> int | None:
    """The number of the message that an answer was written from, or of the next if that was deleted."""
    if row.seen_from is None:
        return None
    return next((n for place, n in numbers.items() if place is not None and place >= row.seen_from), None)


def _message(row: MessageRow, number: int, parent: int | None, options: ExportOptions) -> dict[str, Any]:
    # To whoever reads the file, an answer that is being written is one that was cut off here.
    unfinished = row.state is MessageState.STREAMING
    return {
        "id": number,
        "parent": parent,
        "active": row.active,
        "role": row.role,
        "content": row.content,
        "state": (MessageState.INTERRUPTED if unfinished else row.state).value,
        "created": timestamp(row.created),
        "finished": None if row.finished is None else timestamp(row.finished),
        "model": row.model,
        "reason": row.reason,
        "note": row.note,
        "params": row.params if options.settings else None,
        "stats": row.stats if options.statistics else None,
    }
