"""Which versions of a message there are, and which way through a chat shows one of them. Pure.

Each message follows its parent; messages of one role with the same parent are versions of one another. Ids
grow along every way through a chat, for what follows is written later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Node:
    """A message's place in its chat."""

    id: int
    parent: int | None
    role: str
    active: bool = False


class Tree:
    """The places of all messages of one chat.

    A message that is said to follow a later one, or itself, begins the chat: only damage says so.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        ordered = sorted(map(_follower, nodes), key=lambda node: node.id)
        self.nodes: Mapping[int, Node] = {node.id: node for node in ordered}
        self._children: dict[int | None, list[int]] = defaultdict(list)
        for node in self.nodes.values():
            self._children[node.parent if node.parent in self.nodes else None].append(node.id)

    def children(self, message_id: int | None) -> Sequence[int]:
        """What follows a message (None: what begins the chat), in all versions, the oldest first."""
        return tuple(self._children.get(message_id, ()))

    def versions(self, message_id: int) -> tuple[int, ...]:
        """The versions of a message, itself included, the oldest first.

        Another shown message is none: where damage has lost who followed whom, all stand side by side.
        """
        own = self.nodes[message_id]
        parent = own.parent if own.parent in self.nodes else None
        others = (self.nodes[other] for other in self._children[parent])
        return tuple(
            other.id
            for other in others
            if other.id == own.id or (other.role == own.role and not (own.active and other.active))
        )

    def path_through(self, message_id: int) -> tuple[int, ...]:
        """The way from the beginning to a message and on along the newest versions to an end."""
        path: list[int] = []
        place: int | None = message_id
        while place is not None and place in self.nodes:
            path.append(place)
            place = self.nodes[place].parent
        return (*reversed(path), *self.newest_after(message_id))

    def newest_after(self, message_id: int | None) -> tuple[int, ...]:
        """The way on from a message (None: from the beginning) along the newest versions."""
        path: list[int] = []
        following = self._children.get(message_id)
        while following:
            path.append(following[-1])
            following = self._children.get(following[-1])
        return tuple(path)

    def turn_of(self, message_id: int) -> tuple[int, ...]:
        """The messages that go when a turn is deleted: a question with the answers to it in all versions."""
        start = self.nodes[message_id]
        before = self.nodes.get(start.parent) if start.parent is not None else None
        if start.role == "assistant" and before is not None and before.role == "user":
            start = before
        answers = self._children.get(start.id, []) if start.role == "user" else []
        return (start.id, *(answer for answer in answers if self.nodes[answer].role == "assistant"))


def _follower(node: Node) -> Node:
    sound = node.parent is None or (isinstance(node.parent, int) and node.parent < node.id)
    return node if sound else replace(node, parent=None)
