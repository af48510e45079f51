"""The chat on the screen: which one was asked for last, and what of it is shown. No Qt."""

from __future__ import annotations

from collections.abc import Sequence

from app.chat.requests import in_common, replace_last
from app.storage import Conversation, MessageRow


class ShownChat:
    """A chat that was asked for is shown once it was read, unless another was asked for meanwhile."""

    def __init__(self) -> None:
        self.conversation: Conversation | None = None  # None: one that is not begun
        self.messages: list[MessageRow] = []
        self._wanted: int | None = None  # the chat that was asked for last

    @property
    def is_new(self) -> bool:
        """Whether a chat that is not begun is shown, and no other was asked for."""
        return self.conversation is None and self._wanted is None

    def is_wanted(self, conversation_id: int) -> bool:
        """Whether this chat was asked for last."""
        return self._wanted == conversation_id

    def want(self, conversation_id: int) -> None:
        """Another chat is asked for; the one before is shown until that was read."""
        self._wanted = conversation_id

    def want_no_more(self, conversation_id: int) -> None:
        """A chat that was asked for could not be read: the one that is shown stays."""
        if self.is_wanted(conversation_id):
            self._wanted = None if self.conversation is None else self.conversation.id

    def clear(self) -> None:
        """Show a chat that is not begun."""
        self.conversation, self._wanted, self.messages = None, None, []

    def begin(self, conversation: Conversation) -> None:
        """The chat that was not begun was saved as this one."""
        self.conversation, self._wanted = conversation, conversation.id

    def show(self, conversation: Conversation, rows: Sequence[MessageRow]) -> bool:
        """A chat was read; False if another one was asked for meanwhile."""
        if not self.is_wanted(conversation.id):
            return False
        self.conversation, self.messages = conversation, list(rows)
        return True

    def adopt(self, conversation: Conversation) -> bool:
        """The chat is another by now, such as one with another title; whether it is the one that is shown."""
        is_shown = self.conversation is not None and self.conversation.id == conversation.id
        if is_shown:
            self.conversation = conversation
        return is_shown

    def go_on_with(self, rows: Sequence[MessageRow]) -> tuple[bool, list[MessageRow]]:
        """Take off what is no more among `rows`: whether there was any, and those that are to be added."""
        same = in_common(self.messages, rows)
        fewer = same < len(self.messages)
        del self.messages[same:]
        return fewer, list(rows[same:])

    def replace_last(self, row: MessageRow) -> bool:
        """Put a message's newest state in its place, if it is the last; whether it is."""
        return replace_last(self.messages, row)
