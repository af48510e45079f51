"""Which chat is on the screen, and what of it."""

from __future__ import annotations

from datetime import UTC, datetime

from app.chat.shown import ShownChat
from app.storage import Conversation, MessageRow
from app.storage.rows import MessageState

NOW = datetime(2026, 2, 3, tzinfo=UTC)


def chat(number: int, title: str = "") -> Conversation:
    return Conversation(number, title, "", "", NOW, NOW)


def row(number: int, state: MessageState = MessageState.COMPLETE) -> MessageRow:
    return MessageRow(number, 1, "user", "text", state, NOW)


def test_a_chat_that_was_read_late_does_not_replace_the_one_that_was_asked_for_since() -> None:
    shown = ShownChat()
    assert shown.is_new
    shown.want(1)
    assert not shown.is_new
    shown.want(2)
    assert not shown.show(chat(1), [row(1)])
    assert (shown.conversation, shown.messages) == (None, [])
    assert shown.show(chat(2), [row(2)])
    assert (shown.conversation, shown.messages) == (chat(2), [row(2)])
    shown.clear()
    assert shown.is_new
    assert shown.messages == []


def test_another_title_is_taken_over_for_the_chat_that_is_shown_alone() -> None:
    shown = ShownChat()
    assert not shown.adopt(chat(1, "Rome"))
    shown.begin(chat(1))
    assert not shown.adopt(chat(2, "Paris"))
    assert shown.adopt(chat(1, "Rome"))
    assert shown.conversation == chat(1, "Rome")


def test_only_what_is_another_is_taken_off_and_added() -> None:
    shown = ShownChat()
    shown.begin(chat(1))
    assert shown.go_on_with([row(1)]) == (False, [row(1)])
    shown.messages = [row(1), row(2), row(3)]
    assert shown.go_on_with([row(1), row(2), row(3)]) == (False, [])
    again = row(2, MessageState.STREAMING)
    assert shown.go_on_with([row(1), again]) == (True, [again])
    assert shown.messages == [row(1)]
    assert shown.replace_last(row(1, MessageState.STOPPED))
    assert not shown.replace_last(row(9))
    assert shown.messages == [row(1, MessageState.STOPPED)]
