from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.storage import ChatStore, MessageState, StorageError
from app.storage.incoming import IncomingChat, IncomingMessage, insert_chat, twins

START = datetime(2025, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
CHAT = IncomingChat(
    "Rome",
    START,
    START + timedelta(days=1),
    "starter",
    "Be brief.",
    messages=(
        IncomingMessage("user", "When?", START),
        IncomingMessage("assistant", "In 1", START, 0, active=False, state=MessageState.STOPPED),
        IncomingMessage("assistant", "In 753 BC.", START, 0, finished=START, stats={"seed": 3}),
        IncomingMessage("user", "And?", START, 2),
    ),
)


def test_a_chat_is_saved_with_its_branches(store: ChatStore) -> None:
    store.create_conversation("before")
    saved = insert_chat(store, CHAT)
    assert (saved.title, saved.created, saved.updated) == ("Rome", CHAT.created, CHAT.updated)
    rows = store.messages(saved.id, all_versions=True)
    first, _, third, _ = (row.id for row in rows)
    assert [row.parent for row in rows] == [None, first, first, third]
    assert [row.content for row in store.messages(saved.id)] == ["When?", "In 753 BC.", "And?"]
    assert rows[2].stats == {"seed": 3}
    assert not store.conversation(saved.id).pinned
    assert [line.conversation.title for line in store.conversations()] == ["Rome", "before"]
    assert [line.conversation.title for line in store.conversations("753 bc")] == ["Rome"]


def test_all_or_nothing(store: ChatStore) -> None:
    broken = replace(CHAT, messages=(*CHAT.messages, replace(CHAT.messages[0], role="tool")))  # type: ignore[arg-type]
    with pytest.raises(StorageError, match="Rome"):
        insert_chat(store, broken)
    assert store.conversations() == []


def test_a_chat_goes_on_after_its_import(store: ChatStore) -> None:
    saved = insert_chat(store, CHAT)
    exchange = store.begin_exchange(saved.id, "Go on")
    assert [row.content for row in exchange.history] == ["When?", "In 753 BC.", "And?", "Go on"]
    store.finish_message(exchange.answer.id, "Yes.")


def test_what_is_there_already_is_known(store: ChatStore) -> None:
    later = replace(CHAT, created=START + timedelta(milliseconds=1))
    other = replace(CHAT, messages=(IncomingMessage("user", "Something else", START),))
    empty = replace(CHAT, messages=())
    everything = [CHAT, later, other, empty]
    assert twins(store, everything) == [False] * 4
    saved = insert_chat(store, CHAT)
    store.rename(saved.id, "Roma")
    store.finish_message(store.begin_exchange(saved.id, "more").answer.id, "text")
    assert twins(store, everything) == [True, False, False, False]
    insert_chat(store, empty)
    assert twins(store, everything) == [True, False, False, True]
    store.delete(saved.id)
    assert twins(store, everything) == [False, False, False, True]


def test_half_a_character_in_a_files_figures_costs_nothing_else(store: ChatStore) -> None:
    figures = {"stop": ["\ud800"]}
    odd = replace(CHAT, parameters=figures, messages=(replace(CHAT.messages[0], params=figures),))
    saved = insert_chat(store, odd)
    assert saved.parameters == store.messages(saved.id)[0].params == {"stop": ["\ufffd"]}
