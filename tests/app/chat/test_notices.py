"""What is said below an answer about its end, and what is offered."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.chat.notices import Action, notice_for
from app.storage.rows import MessageRow, MessageState
from engine.events import FinishReason

NOW = datetime(2026, 2, 3, tzinfo=UTC)


def ended(reason: FinishReason, note: str = "") -> MessageRow:
    return MessageRow(1, 1, "assistant", "One, two", MessageState.COMPLETE, NOW, reason=reason, note=note)


@pytest.mark.parametrize("note", ["", "The answer reached the limit of 12 tokens."])
def test_an_answer_that_was_cut_off_can_go_on_whatever_the_engine_says_about_it(note: str) -> None:
    notice = notice_for(ended(FinishReason.LENGTH, note))
    assert notice is not None
    assert notice.action == Action.CONTINUE
    assert note in notice.text


def test_an_answer_that_ended_says_nothing_but_what_the_engine_says() -> None:
    assert notice_for(ended(FinishReason.EOS)) is None
    notice = notice_for(ended(FinishReason.EOS, "Number 2 of the search."))
    assert notice is not None
    assert (notice.text, notice.action) == ("Number 2 of the search.", None)


@pytest.mark.parametrize(("text", "action"), [("One, two", Action.CONTINUE), (" ", Action.REGENERATE)])
def test_after_a_crash_what_was_written_can_go_on(text: str, action: Action) -> None:
    notice = notice_for(MessageRow(1, 1, "assistant", text, MessageState.INTERRUPTED, NOW))
    assert notice is not None
    assert notice.action == action
