"""What was sent before, called back into the composer one by one. Pure.

Messages are texts as they are saved, attached files included. What was being written is kept while others
are looked at; what is changed in them is kept until a message is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from app.attachments.form import merged


class MessageHistory:
    """The place in a list of messages that the composer shows; after the last one comes what was written."""

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._place = 0
        self._written = ""  # what was being written when the first was called back
        self._changed: dict[int, str] = {}

    @property
    def looking(self) -> bool:
        """Whether the composer shows one of the messages."""
        return self._place < len(self._entries)

    def step(self, sent: Sequence[str], shown: str, step: int) -> str | None:
        """What to show instead of `shown`: the message before (`step` -1) or after (1); None for nothing.

        `sent` are the messages of the chat, the oldest first; they are looked at when the first is called.
        """
        if not self.looking:
            self._begin(sent, shown)
        place = self._place + step
        if not 0 <= place <= len(self._entries):
            return None
        if self.looking and shown != self._entries[self._place]:
            self._changed[self._place] = shown
        elif self.looking:
            self._changed.pop(self._place, None)
        self._place = place
        return self._changed.get(place, self._entries[place]) if self.looking else self._written

    def to_keep(self, shown: str) -> str:
        """What has to be saved as the draft: what was being written, and a message only if it was changed."""
        if not self.looking:
            return shown
        same = shown == self._entries[self._place]
        return self._written if same else merged(self._written, shown)

    def leave(self) -> str:
        """Look no more: what was shown is sent, or has gone. Returns what was being written meanwhile."""
        written = self._written if self.looking else ""
        self._entries, self._place, self._written, self._changed = [], 0, "", {}
        return written

    def _begin(self, sent: Sequence[str], shown: str) -> None:
        entries = [text for text, after in pairwise((*sent, "")) if text and text != after]
        if entries != self._entries:
            self._entries, self._changed = entries, {}
        self._place, self._written = len(entries), shown
