"""Read the JSON that this program exports, of every version (docs/export-format.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast, get_args

from app.export.json_format import FORMAT, VERSION
from app.i18n import tr
from app.importing.errors import UnreadableError
from app.importing.fields import Fields
from app.importing.figures import is_keepable
from app.storage.incoming import IncomingChat, IncomingMessage
from app.storage.rows import MessageState
from engine.params import Role


def is_ours(document: object) -> bool:
    """Whether a JSON value is one of our documents, of whatever version."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def read_ours(document: object) -> IncomingChat:
    """The chat in one of our documents. Raises `UnreadableError`."""
    fields = Fields(document, tr("the file"))
    version = fields.number("version")
    if version > VERSION:
        raise UnreadableError(
            tr("it was written by a newer version of this program (format {version})", version=version)
        )
    if version < 1:
        raise fields.complaint("version")
    head = Fields(fields.get("conversation"), tr("the conversation"))
    return IncomingChat(
        title=head.text("title"),
        model=head.text("model"),
        system_prompt=head.text("system_prompt"),
        created=head.time("created"),
        updated=head.time("updated"),
        pinned=version > 1 and head.flag("pinned"),
        archived=version > 1 and head.flag("archived"),
        parameters=_figures(head, "parameters"),
        messages=tuple(_messages(fields.items("messages"))),
    )


def _messages(items: list[Any]) -> list[IncomingMessage]:
    places: dict[int, int] = {}  # the document's ids
    messages: list[IncomingMessage] = []
    for number, item in enumerate(items, 1):
        fields = Fields(item, tr("message {number}", number=number))
        message = _message(fields, places)
        name = fields.number("id")
        if name in places:
            raise fields.complaint("id")
        places[name] = len(messages)
        messages.append(message)
    return _chained(messages)


def _message(fields: Fields, places: dict[int, int]) -> IncomingMessage:
    role = fields.text("role")
    if role not in get_args(Role):
        raise fields.complaint("role")
    try:
        state = MessageState(fields.text("state"))
    except ValueError as error:
        raise fields.complaint("state") from error
    return IncomingMessage(
        role=cast(Role, role),
        content=fields.text("content"),
        created=fields.time("created"),
        parent=_place(fields, "parent", places),
        active=fields.flag("active"),
        # Version 1 said so of an answer that was being written; nobody goes on with it.
        state=MessageState.INTERRUPTED if state is MessageState.STREAMING else state,
        finished=fields.time_or_none("finished"),
        model=fields.text("model"),
        reason=fields.text("reason"),
        note=fields.text("note"),
        params=_figures(fields, "params"),
        stats=_figures(fields, "stats"),
        seen_from=_place(fields, "seen_from", places),
    )


def _place(fields: Fields, key: str, places: dict[int, int]) -> int | None:
    """The place of the earlier message that is named under `key`, if one is."""
    if fields.get(key) is None:
        return None
    place = places.get(fields.number(key))
    if place is None:
        raise fields.complaint(key)
    return place


def _figures(fields: Fields, key: str) -> dict[str, Any] | None:
    value = fields.object_or_none(key)
    if value is not None and not is_keepable(value):
        raise fields.complaint(key)
    return value


def _chained(messages: list[IncomingMessage]) -> list[IncomingMessage]:
    """The messages with each active one following the active one before: a chat shows one line of them."""
    last: int | None = None
    for place, message in enumerate(messages):
        if message.active:
            if message.parent != last:
                messages[place] = replace(message, parent=last)
            last = place
    return messages
