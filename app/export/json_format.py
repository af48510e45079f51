"""A conversation as JSON, version 1: everything that is saved about it, so that it can be read back.

The document is an object:

| key            | value |
|----------------|-------|
| `format`       | `"fiddler-chat-conversation"` |
| `version`      | `1`; readers refuse a higher one, and ignore keys that they do not know |
| `exported`     | when the file was written |
| `conversation` | the object below |
| `messages`     | an array of the objects below, oldest first |

`conversation`: `id`, `title`, `model`, `system_prompt`, `created`, `updated`, `deleted` (a time while it
waits to be removed, else null).

Each message: `id`; `parent`, the id of the message it followed, or null; `active`, false for an answer that
was regenerated or taken back (messages with the same parent are alternatives); `role` (`"system"`, `"user"`,
`"assistant"`); `content`; `state` (`"complete"`, `"streaming"`: was being generated at the export,
`"interrupted"`: the program ended first, `"stopped"`: by the user, `"error"`); `created`; `finished`, null
for messages that were not generated or did not end; `model`; `reason`, why the answer ended (`"eos"`,
`"stop_string"`, `"length"`, `"context_full"`, `"loop"`, `"cancelled"`, or `""`); `note`, a sentence about it
for the user; `params`, null or how it was asked for; `stats`, null or its figures.

`params`: `max_tokens`, `stop` (strings), `stop_loops`, `ignore_eos`, and `sampling` with `temperature`,
`top_k`, `top_p`, `min_p`, `repetition_penalty`, `seed` (null: drawn for each answer, see `stats`).

`stats`: counts of tokens (`prompt_tokens`, `reused_tokens`, `generated_tokens`, `context_used`,
`context_length`), seconds (`time_to_first_token`, `prefill_seconds`, `decode_seconds`), tokens per second
(`tokens_per_second`, `tokens_per_second_now`, `prefill_tokens_per_second`), `seed`, and `hits`, the
executions of experts as nested arrays [prefill, decode][layer][expert][on the GPU, copied to it, on the CPU].

Times are in UTC as `2026-01-02T03:04:05.678Z`. Ids hold within the document alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from app.storage.rows import Conversation, MessageRow

FORMAT = "fiddler-chat-conversation"
VERSION = 1


def to_json(conversation: Conversation, messages: Sequence[MessageRow], exported: datetime) -> str:
    """The document described above, with a newline at its end."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "exported": timestamp(exported),
        "conversation": _conversation(conversation),
        "messages": [_message(message) for message in messages],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def timestamp(moment: datetime) -> str:
    """`moment` in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _conversation(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "model": conversation.model,
        "system_prompt": conversation.system_prompt,
        "created": timestamp(conversation.created),
        "updated": timestamp(conversation.updated),
        "deleted": _or_null(conversation.deleted),
    }


def _message(message: MessageRow) -> dict[str, Any]:
    return {
        "id": message.id,
        "parent": message.parent,
        "active": message.active,
        "role": message.role,
        "content": message.content,
        "state": message.state.value,
        "created": timestamp(message.created),
        "finished": _or_null(message.finished),
        "model": message.model,
        "reason": message.reason,
        "note": message.note,
        "params": message.params,
        "stats": message.stats,
    }


def _or_null(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)
