"""Messages for a view of a conversation, and looks at what it shows, for the tests."""

from __future__ import annotations

from datetime import UTC, datetime

from PySide6.QtWidgets import QApplication

from app.chat.message import AssistantMessage
from app.chat.prose import ProseArea
from app.chat.view import ConversationView
from app.storage import MessageRow, MessageState
from engine.params import Role

LONG = "\n\n".join(f"Paragraph {number} of a long text that fills the view." for number in range(60))


def row(number: int, role: Role, content: str, state: MessageState = MessageState.COMPLETE) -> MessageRow:
    return MessageRow(number, 1, role, content, state, datetime.now(UTC), model="M")


def settle() -> None:
    """Let Qt lay out what has changed."""
    for _ in range(5):
        QApplication.processEvents()


def last(view: ConversationView) -> AssistantMessage:
    message = view.views[-1]
    assert isinstance(message, AssistantMessage)
    return message


def prose(view: ConversationView) -> ProseArea:
    area = last(view).body.areas[0]
    assert isinstance(area, ProseArea)
    return area


def at_end(view: ConversationView) -> bool:
    bar = view.verticalScrollBar()
    return bar.maximum() > 0 and bar.value() == bar.maximum()
