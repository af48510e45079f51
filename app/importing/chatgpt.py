"""Read conversations as ChatGPT exports them: a tree of nodes, of which only the written words are taken."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from app.i18n import tr
from app.importing.chatgpt_text import words_of
from app.importing.errors import UnreadableError
from app.importing.outcome import LeftOut
from app.storage.incoming import IncomingChat, IncomingMessage
from app.storage.rows import MessageState
from engine.params import Role
from engine.text import clean_text

_LATEST = 253_370_764_800  # seconds: the year 9999

Node = dict[str, Any]


def is_chatgpt(document: object) -> bool:
    """Whether a JSON value is one of ChatGPT's conversations."""
    return isinstance(document, dict) and isinstance(document.get("mapping"), dict)


def read_chatgpt(document: dict[str, Any], left_out: Counter[LeftOut]) -> IncomingChat:
    """The chat; adds to `left_out` what it cannot hold. Raises `UnreadableError` if nothing remains of it."""
    created = _time(document.get("create_time")) or _earliest(document) or datetime.fromtimestamp(0, UTC)
    reader = _Reader(document, created, left_out)
    reader.read()
    if not reader.messages:
        raise UnreadableError(tr("it holds no written messages"))
    last = max(message.created for message in reader.messages)
    models = [message.model for message in reader.messages if message.model]
    return IncomingChat(
        title=_string(document.get("title")),
        created=created,
        updated=_time(document.get("update_time")) or last,
        model=_string(document.get("default_model_slug")) or (models[-1] if models else ""),
        system_prompt=reader.system_prompt,
        pinned=document.get("is_starred") is True,
        archived=document.get("is_archived") is True,
        messages=tuple(reader.messages),
    )


class _Reader:
    """Walks the tree once, without recursion: chats are deeper than Python's stack."""

    def __init__(self, document: dict[str, Any], created: datetime, left_out: Counter[LeftOut]) -> None:
        self._nodes: dict[str, Any] = document["mapping"]
        self._created, self._left_out = created, left_out
        self._active = set(self._path(document.get("current_node")))
        self.messages: list[IncomingMessage] = []
        self.system_prompt = ""

    def read(self) -> None:
        """Fill `messages`, parents before children, and `system_prompt`."""
        roots = [name for name in self._nodes if self._parent(name) is None]
        # A node, the place of the message above it, and whether that is above nothing else.
        waiting = [(name, cast(int | None, None), False) for name in reversed(roots)]
        seen: set[str] = set()
        while waiting:
            name, above, alone = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            place = self._take(name, above, alone)
            children = self._children(name)
            alone = len(children) == 1 and (alone or place != above)
            waiting += [(child, place, alone) for child in reversed(children)]

    def _take(self, name: str, above: int | None, alone: bool) -> int | None:
        """Keep what the node says; the place of its message, or of the one above if it has none."""
        node = self._nodes[name]
        found = node.get("message") if isinstance(node, dict) else None
        if not isinstance(found, dict):
            return above
        role, text = words_of(found, self._left_out)
        if role == "system":
            self.system_prompt = self.system_prompt or text
            return above
        if role not in ("user", "assistant") or not text:
            return above
        message = self._message(found, cast(Role, role), text, above, name in self._active)
        before = self.messages[above] if above is not None else None
        if before is not None and before.role == role == "assistant" and alone:
            # One answer, which a tool's work divides.
            self.messages[cast(int, above)] = replace(
                before, content=f"{before.content}\n\n{text}", active=before.active or message.active
            )
            return above
        self.messages.append(message)
        return len(self.messages) - 1

    def _message(
        self, found: Node, role: Role, text: str, above: int | None, active: bool
    ) -> IncomingMessage:
        metadata = found.get("metadata")
        details: Node = metadata if isinstance(metadata, dict) else {}
        earlier = self._created if above is None else self.messages[above].created
        unfinished = role == "assistant" and found.get("status") == "in_progress"
        return IncomingMessage(
            role=role,
            content=text,
            created=_time(found.get("create_time")) or earlier,
            parent=above,
            active=active,
            state=MessageState.INTERRUPTED if unfinished else MessageState.COMPLETE,
            model=_string(details.get("model_slug")) if role == "assistant" else "",
        )

    def _path(self, name: object) -> Iterator[str]:
        """The nodes that the chat shows, from the last to the first."""
        if not isinstance(name, str) or name not in self._nodes:
            name = self._newest()
        seen: set[str] = set()
        current: str | None = name
        while current is not None and current not in seen:
            seen.add(current)
            yield current
            current = self._parent(current)

    def _newest(self) -> str | None:
        """Where the file does not say which line is shown: the end of the last one."""
        return next(reversed(self._nodes), None)

    def _parent(self, name: str) -> str | None:
        node = self._nodes[name]
        parent = node.get("parent") if isinstance(node, dict) else None
        return parent if isinstance(parent, str) and parent in self._nodes else None

    def _children(self, name: str) -> list[str]:
        node = self._nodes[name]
        listed = node.get("children") if isinstance(node, dict) else None
        names = [child for child in listed if isinstance(child, str)] if isinstance(listed, list) else []
        return [child for child in names if child in self._nodes and self._parent(child) == name]


def _time(value: object) -> datetime | None:
    """Seconds since 1970, in whole milliseconds as the database keeps them."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if not 0 <= value < _LATEST or not math.isfinite(value):
        return None
    return datetime.fromtimestamp(round(value * 1000) / 1000, UTC)


def _earliest(document: dict[str, Any]) -> datetime | None:
    nodes = [node for node in document["mapping"].values() if isinstance(node, dict)]
    found = [node["message"] for node in nodes if isinstance(node.get("message"), dict)]
    times = [time for time in (_time(message.get("create_time")) for message in found) if time is not None]
    return min(times, default=None)


def _string(value: object) -> str:
    return clean_text(value) if isinstance(value, str) else ""
