"""The messages that wait for an answer's end, one for each chat at most, in memory and on the disk.

What becomes of them when an answer ends is decided here; `ComposerControl` carries it out.
"""

from __future__ import annotations

from app.storage import ChatStore, MessageRow, MessageState
from app.storage.thread import StorageThread
from engine.events import FinishReason


def ended_well(row: MessageRow) -> bool:
    """Whether a message that waited for this answer follows it: not where the user or a fault ended it."""
    return row.state is MessageState.COMPLETE and row.reason != FinishReason.CONTEXT_FULL


class WaitingMessages:
    """By chat (None: the one that is not begun); the order is that in which they came."""

    def __init__(self, storage: StorageThread) -> None:
        self._storage = storage
        self._messages: dict[int | None, str] = {}

    def __bool__(self) -> bool:
        return bool(self._messages)

    def of(self, chat: int | None) -> str:
        """What waits in a chat; empty for nothing."""
        return self._messages.get(chat, "")

    def put(self, chat: int | None, message: str) -> None:
        """Let a message wait; it is kept on the disk until it has been sent or is taken back."""
        self._messages[chat] = message
        self._storage.run(ChatStore.save_next, chat, message)

    def remove(self, chat: int | None) -> str:
        """Let nothing wait in a chat any more, here and on the disk. Returns what did."""
        message = self._messages.pop(chat, "")
        if message:
            self._storage.run(ChatStore.save_next, chat, "")
        return message

    def release(self, chat: int | None) -> str:
        """Let nothing wait here; what is on the disk stays for whoever sends it or takes it back."""
        return self._messages.pop(chat, "")

    def first(self, after: int | None) -> int | None:
        """The chat whose message is to be sent: that of the answer, or the one that waits longest."""
        return after if after in self._messages else next(iter(self._messages))

    def begun(self, chat: int) -> None:
        """The chat that was not begun has become this one."""
        message = self._messages.pop(None, "")
        if message:
            self.put(chat, message)
            self._storage.run(ChatStore.save_next, None, "")
