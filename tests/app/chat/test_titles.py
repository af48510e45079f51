from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.requests import TITLE_CHARACTERS, title_from
from app.chat.titles import REQUEST, clean_title, is_about, is_wanted, request, whole_lines
from app.storage import ChatStore, MessageState, open_in_memory
from app.text import one_line
from engine.params import Message


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("The capital of France", "The capital of France"),
        ("Title: The capital of France", "The capital of France"),
        ("**Title:** “The capital of France.”", "The capital of France"),
        ('"The capital of France"', "The capital of France"),
        ('"The capital of France', "The capital of France"),
        ("# The capital of France\n\nIt is Paris.", "The capital of France"),
        ("Sure! Here is a title:\n\nThe capital of France", "The capital of France"),
        ("Sure, here's one: The capital of France", "The capital of France"),
        ("Good question. A possible title:\n\nThe capital of France\nOr so", "The capital of France"),
        ("1. The capital of France\n2. Paris", "The capital of France"),
        ("标题：法国的首都。", "法国的首都"),
        ("제목: 프랑스의 수도", "프랑스의 수도"),
        ("عاصمة فرنسا", "عاصمة فرنسا"),
        ("What is C++?", "What is C++?"),
        ("The “big” question", "The “big” question"),
        ("  spaces\tand   tabs ", "spaces and tabs"),
    ],
)
def test_a_title_is_taken_out_of_what_is_around_it(answer: str, title: str) -> None:
    assert clean_title(answer) == title


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n ",
        "...",
        '""',
        "Title:",
        "Untitled",
        "New chat",
        "**",
        "two to six words",
        "This conversation is about Paris.",
        "A title for the conversation",
        REQUEST,
        "a " * 20,
        "The capital of France, which is Paris, a large city on the river Seine in Europe",
    ],
)
def test_what_is_no_title_is_refused(answer: str) -> None:
    assert clean_title(answer) is None


def test_a_line_that_was_cut_off_is_left_out() -> None:
    assert whole_lines("The capital of Fra", cut_off=True) == ""
    assert whole_lines("The capital of France\n\nIt is Pa", cut_off=True).strip() == "The capital of France"
    assert whole_lines("The capital of France", cut_off=False) == "The capital of France"


@pytest.mark.parametrize(
    ("title", "conversation", "expected"),
    [
        ("The capital of France", "What is the Capital of France?", True),
        ("Baking bread", "How do I bake sourdough breads?", True),
        ("Paris, city of love", "What is the capital of France? It is Paris.", True),
        ("The birth of a new life", "Give me ideas for a party.", False),
        ("法国的首都", "法国的首都是哪里？巴黎。", True),
        ("日本の首都", "法国的首都是哪里？", False),
        ("프랑스의 수도", "프랑스의 수도는 어디인가요?", True),
        ("C++ or Go", "Which is better?", True),  # cannot be told
    ],
)
def test_a_title_is_about_what_was_said(title: str, conversation: str, expected: bool) -> None:
    assert is_about(title, conversation) is expected


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_whatever_a_model_says_a_title_can_stand_in_the_list(answer: str) -> None:
    title = clean_title(answer)
    if title is not None:
        assert title == one_line(title)
        assert 0 < len(title) <= TITLE_CHARACTERS
        assert clean_title(title) == title


@pytest.fixture
def store() -> ChatStore:
    return open_in_memory().store


def test_only_a_young_chat_with_its_first_words_is_named(store: ChatStore) -> None:
    text = "What is the capital of France?"
    chat = store.create_conversation(title_from(text))
    for number in range(4):
        store.add_message(chat.id, "user", text if number == 0 else "And now?")
        store.add_message(chat.id, "assistant", "Paris.")
        assert is_wanted(chat, store.messages(chat.id)) is (number < 3)
    begun = store.messages(chat.id)[:2]
    assert not is_wanted(dataclasses.replace(chat, title="Mine"), begun)
    stopped = dataclasses.replace(begun[1], state=MessageState.STOPPED)
    assert not is_wanted(chat, [begun[0], stopped])
    assert not is_wanted(chat, [])


def test_the_request_begins_as_the_next_message_will(store: ChatStore) -> None:
    chat = store.create_conversation("x", system_prompt="Be brief.")
    store.add_message(chat.id, "user", "Capital?")
    store.add_message(chat.id, "assistant", "Paris.")
    assert request(chat, store.messages(chat.id)) == [
        Message("system", "Be brief."),
        Message("user", "Capital?"),
        Message("assistant", "Paris."),
        Message("user", REQUEST),
    ]


def test_a_title_of_the_user_is_never_replaced(store: ChatStore) -> None:
    chat = store.create_conversation("first words")
    named = store.rename_unless_renamed(chat, "  By the\nmodel ")
    assert named is not None
    assert named.title == "By the model"
    assert store.rename_unless_renamed(chat, "Once more") is None  # it is no longer as it was
    mine = store.rename(chat.id, "first words")
    store.delete(chat.id)
    assert store.rename_unless_renamed(mine, "By the model") is None
    assert store.conversation(chat.id).title == "first words"
