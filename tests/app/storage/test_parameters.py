"""How a chat is answered, and what of it the model has read, in the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.storage import ChatStore, StorageError, open_store

PARAMETERS = {"preset": "precise", "temperature": 0.2}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(tmp_path / "chats.sqlite3").store
    yield opened
    opened.close()


def conversation(store: ChatStore, turns: int = 3) -> tuple[int, list[int]]:
    chat = store.create_conversation("Rome", "M", "Be brief.", PARAMETERS)
    for turn in range(turns):
        exchange = store.begin_exchange(chat.id, f"question {turn}")
        store.finish_message(exchange.answer.id, f"answer {turn}")
    return chat.id, [row.id for row in store.messages(chat.id)]


def test_parameters_are_kept_and_changed(store: ChatStore) -> None:
    chat, _ = conversation(store)
    assert store.conversation(chat).parameters == PARAMETERS
    before = store.conversation(chat)
    changed = store.set_parameters(chat, "Be long.", {"preset": "x"})
    assert (changed.system_prompt, changed.parameters) == ("Be long.", {"preset": "x"})
    assert changed == store.conversation(chat)
    assert changed.updated == before.updated
    assert store.set_parameters(chat, "", None).parameters is None
    assert store.create_conversation("x").parameters is None
    with pytest.raises(StorageError):
        store.set_parameters(999, "", None)


def test_where_an_answer_begins_to_see_is_kept_and_copied(store: ChatStore) -> None:
    chat, ids = conversation(store)
    store.save_seen_from(ids[5], ids[2])
    assert [row.seen_from for row in store.messages(chat)] == [None] * 5 + [ids[2]]
    copy = store.duplicate(chat)
    assert copy.parameters == PARAMETERS
    copied = store.messages(copy.id)
    assert copied[5].seen_from == copied[2].id


def test_a_copy_knows_the_next_message_where_that_one_was_deleted(store: ChatStore) -> None:
    chat, ids = conversation(store)
    store.save_seen_from(ids[5], ids[2])
    store.delete_turn(ids[2])
    copied = store.messages(store.duplicate(chat).id)
    assert copied[-1].seen_from == copied[2].id


def test_an_answer_that_is_gone_on_with_is_read_for_anew(store: ChatStore) -> None:
    _, ids = conversation(store)
    store.save_seen_from(ids[5], ids[2])
    assert store.begin_continuation(ids[5]).answer.seen_from is None
