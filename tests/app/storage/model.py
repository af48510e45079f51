"""The chats as lists and dicts, to compare the store with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from app.storage import ChatStore
from app.storage.branches import Node, Tree
from app.storage.messages import deactivate_after


@dataclass
class ModelMessage:
    id: int
    role: str
    content: str
    state: str = "complete"
    active: bool = True
    parent: int | None = None


@dataclass
class ModelChat:
    title: str
    system_prompt: str
    deleted: datetime | None = None
    pinned: bool = False
    archived: bool = False
    draft: str = ""
    waiting: str = ""
    edits: dict[int, str] = field(default_factory=dict)
    messages: list[ModelMessage] = field(default_factory=list)

    def active(self) -> list[ModelMessage]:
        return [message for message in self.messages if message.active]

    def tree(self) -> Tree:
        return Tree(Node(row.id, row.parent, row.role, row.active) for row in self.messages)

    def show(self, path: tuple[int, ...]) -> None:
        for message in self.messages:
            message.active = message.id in path

    def put(self, message: ModelMessage) -> None:
        message.parent = max((row.id for row in self.active()), default=None)
        self.messages.append(message)

    def drop_wordless(self) -> set[int]:
        """What a start removes: answers under way without a word, not shown, that nothing followed."""
        parents = {message.parent for message in self.messages}
        dropped = {
            message.id
            for message in self.messages
            if message.state == "streaming" and not (message.active or message.content)
        } - parents
        self.messages = [message for message in self.messages if message.id not in dropped]
        for message_id in dropped:
            self.edits.pop(message_id, None)
        return dropped

    def contains(self, sought: str) -> bool:
        """Whether a search finds the chat: not by an answer that is still being written."""
        ended = [message.content for message in self.active() if message.state != "streaming"]
        texts = [self.title, *ended]
        words = sought.casefold().split()
        return any(all(word in text.casefold() for word in words) for text in texts)


def take_back(store: ChatStore, chat: int) -> bool:
    """Show a chat's last question and its answer no more, as early versions could: they stay in the file."""
    query = "SELECT max(id) FROM message WHERE conversation_id = ? AND active = 1 AND role = 'user'"
    (last,) = store._db.execute(query, (chat,)).fetchone()
    if last is not None:
        deactivate_after(store._db, chat, last - 1)
    return last is not None
