from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.requests import TITLE_CHARACTERS, title_from, turns
from app.storage import MessageRow, MessageState
from engine.params import Message, Role


def row(role: Role, content: str, state: MessageState = MessageState.COMPLETE) -> MessageRow:
    return MessageRow(1, 1, role, content, state, datetime.now(UTC))


ROWS = st.lists(
    st.builds(row, st.sampled_from(["user", "assistant"]), st.sampled_from(["", "a", "b c", " "])), max_size=8
)


def test_a_question_whose_answer_failed_at_once_is_replaced_by_the_next() -> None:
    history = [row("user", "lost"), row("assistant", "", MessageState.ERROR), row("user", "again")]
    assert turns("", history) == [Message("user", "again")]


def test_a_stopped_answer_is_part_of_the_conversation() -> None:
    history = [row("user", "q"), row("assistant", "half", MessageState.STOPPED), row("user", "go on")]
    assert [message.content for message in turns("", history)] == ["q", "half", "go on"]


@given(history=ROWS, system=st.sampled_from(["", "  ", "Be kind."]))
def test_roles_always_alternate_after_an_optional_system_prompt(
    history: list[MessageRow], system: str
) -> None:
    roles = [message.role for message in turns(system, history)]
    if system.strip():
        assert roles.pop(0) == "system"
    assert roles == [("user", "assistant")[index % 2] for index in range(len(roles))]


@given(history=ROWS)
def test_the_last_question_is_always_asked(history: list[MessageRow]) -> None:
    messages = turns("", [*history, row("user", "the last")])
    assert messages[-1] == Message("user", "the last")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("\n\n  # Plan for Monday\ndetails", "Plan for Monday"),
        ("- first item\n- second", "first item"),
        ("1. Step one", "Step one"),
        ("3 apples", "3 apples"),
        ("**", "**"),
        ("word " * 30, ("word " * 12).strip() + "…"),
        ("x" * 200, "x" * TITLE_CHARACTERS + "…"),
        ("日本語の質問です", "日本語の質問です"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_from(text) == title


@given(st.text(min_size=1, max_size=300))
def test_titles_are_short_and_on_one_line(text: str) -> None:
    title = title_from(text)
    assert len(title) <= TITLE_CHARACTERS + 1
    assert "\n" not in title
    assert bool(title) == bool(text.strip())
