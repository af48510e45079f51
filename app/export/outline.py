"""A conversation as people read it, from top to bottom: what the chat shows, and other versions beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.storage.rows import MessageRow


@dataclass(frozen=True)
class Entry:
    """A message in its place. `depth` 0: the chat shows it; more: it branches off, or follows one that does.

    `begins`: it is the first of its branch. `version` of `versions` counts the alternatives to it, from 1.
    """

    message: MessageRow
    depth: int = 0
    begins: bool = False
    version: int = 1
    versions: int = 1


def outline(messages: Sequence[MessageRow], *, branches: bool) -> list[Entry]:
    """The active messages; with `branches`, each is followed by its alternatives and what follows those."""
    if not branches:
        return [Entry(message) for message in messages if message.active]
    return list(_Tree(messages).entries())


class _Tree:
    def __init__(self, messages: Sequence[MessageRow]) -> None:
        self._active = [message for message in messages if message.active]
        self._children: dict[int | None, list[MessageRow]] = {}
        seen: set[int] = set()
        above: int | None = None
        for message in messages:
            # What it followed may have been lost; it is then a beginning. The active ones are a chain.
            parent = message.parent if message.parent in seen else None
            if message.active:
                parent, above = above, message.id
            self._children.setdefault(parent, []).append(message)
            seen.add(message.id)

    def entries(self) -> Iterator[Entry]:
        above: int | None = None
        for message in self._active:
            versions = self._children[above]
            yield Entry(message, 0, False, versions.index(message) + 1, len(versions))
            yield from self._others(versions)
            above = message.id
        yield from self._others(self._children.get(above, []))  # taken back, nothing in their place

    def _others(self, versions: list[MessageRow]) -> Iterator[Entry]:
        """The inactive ones of `versions`, each with all that follows it; no recursion: chats are long."""
        waiting = [
            Entry(message, 1, True, place, len(versions))
            for place, message in enumerate(versions, 1)
            if not message.active
        ]
        waiting.reverse()
        while waiting:
            entry = waiting.pop()
            yield entry
            following = self._children.get(entry.message.id, [])
            for place in range(len(following), 0, -1):
                begins = place > 1
                depth = entry.depth + begins
                waiting.append(Entry(following[place - 1], depth, begins, place, len(following)))
