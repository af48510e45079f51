from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from app.storage import ChatStore, MessageRow, StorageError
from app.storage.trash import KEEP_DELETED


def exchange(store: ChatStore, chat: int, question: str) -> int:
    """The id of a question with a finished answer."""
    begun = store.begin_exchange(chat, question)
    store.finish_message(begun.answer.id, f"answer to {question}")
    return begun.history[-1].id


def shape(rows: list[MessageRow]) -> list[tuple[int, int | None, str, bool]]:
    return [(row.id, row.parent, row.content, row.active) for row in rows]


@pytest.fixture
def chat(store: ChatStore) -> int:
    return store.create_conversation("chat").id


@pytest.mark.parametrize("deleting", list(permutations(range(3))))
@pytest.mark.parametrize("restoring", list(permutations(range(3))))
def test_turns_come_back_to_their_places_in_any_order(
    store: ChatStore, chat: int, deleting: tuple[int, ...], restoring: tuple[int, ...]
) -> None:
    questions = [exchange(store, chat, name) for name in "abcd"]
    before = shape(store.messages(chat, all_versions=True))
    deleted = {place: store.delete_turn(questions[place])[0].id for place in deleting}
    assert [row.content for row in store.messages(chat)] == ["d", "answer to d"]
    for place in restoring:
        store.restore_turn(deleted[place])
    assert shape(store.messages(chat, all_versions=True)) == before
    assert store.deleted() == ([], [])


@pytest.mark.parametrize("gone", range(3))
@pytest.mark.parametrize("deleting", list(permutations(range(3))))
def test_where_a_turn_is_gone_for_good_the_others_come_back_around_it(
    store: ChatStore, chat: int, deleting: tuple[int, ...], gone: int
) -> None:
    questions = [exchange(store, chat, name) for name in "abcd"]
    deleted = {place: store.delete_turn(questions[place])[0].id for place in deleting}
    store.remove_for_good([], [deleted.pop(gone)])
    for turn in deleted.values():
        _, rows = store.restore_turn(turn)
    assert [row.content for row in rows if row.role == "user"] == [
        name for place, name in enumerate("abcd") if place != gone
    ]
    assert [row.parent for row in rows] == [None, *(row.id for row in rows[:-1])]


def test_what_was_deleted_is_listed_and_comes_back_after_a_restart(
    store: ChatStore, chat: int, reopen: Callable[[], ChatStore]
) -> None:
    question = exchange(store, chat, "a\n long question")
    exchange(store, chat, "b")
    other = store.create_conversation("other").id
    exchange(store, other, "x")
    empty = store.create_conversation("empty").id
    store.delete_turn(question)
    store.delete(other)
    store.delete(empty)  # there is nothing to bring back
    store.close()
    store = reopen()
    chats, (turn,) = store.deleted()
    assert [(line.conversation.title, line.messages) for line in chats] == [("other", 2)]
    assert (turn.conversation_id, turn.title, turn.text) == (chat, "chat", "a long question")
    assert store.conversations("question") == []
    where, rows = store.restore_turn(turn.id)
    assert where == chat
    assert [row.content for row in rows] == [
        "a\n long question",
        "answer to a\n long question",
        "b",
        "answer to b",
    ]
    assert [line.conversation.id for line in store.conversations("question")] == [chat]
    with pytest.raises(StorageError, match="there again already"):
        store.restore_turn(turn.id)


def test_turns_of_a_deleted_chat_come_back_with_it(store: ChatStore, chat: int) -> None:
    store.delete_turn(exchange(store, chat, "only"))
    store.delete(chat)
    chats, turns = store.deleted()
    assert [line.conversation.id for line in chats] == [chat]  # though it has no message now
    assert not turns
    store.undelete(chat)
    assert [turn.text for turn in store.deleted()[1]] == ["only"]


def test_turns_are_kept_for_some_days(store: ChatStore, chat: int, clock: Any) -> None:
    store.delete_turn(exchange(store, chat, "old needle"))
    clock.now += KEEP_DELETED - timedelta(days=1)
    store.delete_turn(exchange(store, chat, "new"))
    assert store.purge() == 0
    clock.now += timedelta(days=2)
    assert store.purge() == 1
    assert [turn.text for turn in store.deleted()[1]] == ["new"]


def test_for_good_is_for_good(store: ChatStore, chat: int, reopen: Callable[[], ChatStore]) -> None:
    secret = "wq8-secret-needle"
    turn, _ = store.delete_turn(exchange(store, chat, f"turn {secret}"))
    other = store.create_conversation("other").id
    exchange(store, other, f"chat {secret}")
    store.delete(other)
    store.remove_for_good([other, chat], [turn.id])  # `chat` is not deleted: it stays
    assert store.deleted() == ([], [])
    assert [line.conversation.id for line in store.conversations()] == [chat]
    path = store.path
    store.close()
    for file in path.parent.glob(path.name + "*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes()
    assert reopen().messages(other) == []


def test_a_change_that_was_not_saved_goes_and_comes_with_its_turn(store: ChatStore, chat: int) -> None:
    question = exchange(store, chat, "a")
    store.save_edit(question, "a, please")
    turn, _ = store.delete_turn(question)
    assert store.edits(chat) == {}
    store.restore_turn(turn.id)
    assert store.edits(chat) == {question: "a, please"}


def test_changes_are_kept_for_each_message_across_starts(
    store: ChatStore, chat: int, reopen: Callable[[], ChatStore]
) -> None:
    first, second = exchange(store, chat, "a"), exchange(store, chat, "b")
    elsewhere = exchange(store, store.create_conversation().id, "c")
    store.save_edit(first, "one")
    store.save_edit(first, "one\ntwo")
    store.save_edit(second, "three")
    store.save_edit(elsewhere, "four")
    store.save_edit(999, "nobody's")
    store.close()
    store = reopen()
    assert store.edits(chat) == {first: "one\ntwo", second: "three"}
    store.save_edit(second, "")
    assert store.edits(chat) == {first: "one\ntwo"}


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"rows": [], "followers": {}, "end": 1, "edits": {}}'])
def test_a_damaged_entry_is_in_nobodys_way(store: ChatStore, chat: int, damage: str) -> None:
    bad, _ = store.delete_turn(exchange(store, chat, "a"))
    store._db.execute("UPDATE deleted_turn SET content = ?", (damage,))
    good, _ = store.delete_turn(exchange(store, chat, "b"))
    assert [turn.text for turn in store.deleted()[1]] == ["b"]
    with pytest.raises(StorageError, match="could not be brought back"):
        store.restore_turn(bad.id)
    assert [row.content for row in store.restore_turn(good.id)[1]] == ["b", "answer to b"]
    store.purge(timedelta(0))
    assert store._db.execute("SELECT count(*) FROM deleted_turn").fetchone()[0] == 0
