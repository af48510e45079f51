from collections.abc import Callable

import pytest

from app.storage import ChatStore, MessageRow, MessageState, StorageError


def exchange(store: ChatStore, chat: int, question: str, answer: str) -> tuple[int, int]:
    """The ids of a question and its finished answer."""
    begun = store.begin_exchange(chat, question)
    store.finish_message(begun.answer.id, answer)
    return begun.history[-1].id, begun.answer.id


def texts(rows: list[MessageRow]) -> list[str]:
    return [row.content for row in rows]


@pytest.fixture
def chat(store: ChatStore) -> int:
    return store.create_conversation("chat").id


def test_an_edited_question_is_another_version_and_the_old_way_stays(store: ChatStore, chat: int) -> None:
    first, _ = exchange(store, chat, "one", "1")
    exchange(store, chat, "two", "2")
    begun = store.begin_edited(first, "one, please", model="m")
    assert texts(list(begun.history)) == ["one, please"]
    assert begun.history[-1].versions == (first, begun.history[-1].id)
    assert begun.history[-1].parent is None
    assert (begun.answer.model, begun.answer.state) == ("m", MessageState.STREAMING)
    store.finish_message(begun.answer.id, "new")
    assert texts(store.messages(chat)) == ["one, please", "new"]
    assert texts(store.show_version(first)) == ["one", "1", "two", "2"]
    assert texts(store.show_version(begun.answer.id)) == ["one, please", "new"]
    assert texts(store.messages(chat)) == ["one, please", "new"]


def test_any_answer_can_be_had_anew(store: ChatStore, chat: int) -> None:
    _, answer = exchange(store, chat, "one", "1")
    exchange(store, chat, "two", "2")
    begun = store.begin_other_answer(answer)
    assert texts(list(begun.history)) == ["one"]
    assert begun.answer.versions == (answer, begun.answer.id)
    store.finish_message(begun.answer.id, "uno")
    exchange(store, chat, "due?", "2")
    assert texts(store.show_version(answer)) == ["one", "1", "two", "2"]
    assert texts(store.show_version(begun.answer.id)) == ["one", "uno", "due?", "2"]


def test_an_answer_can_be_put_right(store: ChatStore, chat: int) -> None:
    _, answer = exchange(store, chat, "one", "1")
    exchange(store, chat, "two", "2")
    rows = store.edit_answer(answer, "one is 1")
    assert texts(rows) == ["one", "one is 1"]
    assert rows[-1].versions == (answer, rows[-1].id)
    assert texts(store.show_version(answer)) == ["one", "1", "two", "2"]
    assert [line.place for line in store.conversations("one is")] == []  # that version is not shown
    store.show_version(rows[-1].id)
    assert [line.place for line in store.conversations("one is")] == [rows[-1].id]


def test_an_answer_is_gone_on_with_and_survives_a_crash(
    store: ChatStore, chat: int, reopen: Callable[[], ChatStore]
) -> None:
    _, answer = exchange(store, chat, "one", "1, ")
    begun = store.begin_continuation(answer)
    assert texts(list(begun.history)) == ["one", "1, "]
    assert (begun.answer.id, begun.answer.content) == (answer, "1, ")
    assert begun.answer.state is MessageState.STREAMING
    with pytest.raises(StorageError, match="being written"):
        store.begin_continuation(answer)
    store.update_partial(answer, "1, 2, ")
    store.close()
    again = reopen()
    row = again.messages(chat)[-1]
    assert (row.content, row.state) == ("1, 2, ", MessageState.INTERRUPTED)
    again.begin_continuation(answer)
    again.finish_message(answer, "1, 2, 3")
    assert again.messages(chat)[-1].state is MessageState.COMPLETE


def test_only_the_last_answer_is_gone_on_with(store: ChatStore, chat: int) -> None:
    _, answer = exchange(store, chat, "one", "1")
    exchange(store, chat, "two", "2")
    with pytest.raises(StorageError, match="no longer the last"):
        store.begin_continuation(answer)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_turn_is_deleted_and_brought_back(store: ChatStore, chat: int, turn: int, place: int) -> None:
    turns = [exchange(store, chat, question, f"answer to {question}") for question in "abc"]
    before = store.messages(chat, all_versions=True)
    deleted, left = store.delete_turn(turns[turn][place])
    expected = [text for name in "abc" if name != "abc"[turn] for text in (name, f"answer to {name}")]
    assert texts(left) == texts(store.messages(chat)) == expected
    assert len(store.messages(chat, all_versions=True)) == 4  # gone for good
    assert [row.parent for row in left] == [None, *(row.id for row in left[:-1])]
    assert texts(store.restore_turn(deleted.id)[1]) == texts(before)
    assert store.messages(chat, all_versions=True) == before


def test_with_a_question_all_versions_of_its_answer_go_but_what_followed_them_stays(
    store: ChatStore, chat: int
) -> None:
    question, answer = exchange(store, chat, "a", "1")
    follow, _ = exchange(store, chat, "b", "2")
    other = store.begin_other_answer(answer).answer.id
    store.finish_message(other, "one")
    deleted, left = store.delete_turn(question)
    assert texts(left) == ["b", "2"]  # nothing else is left to be shown
    assert texts(store.restore_turn(deleted.id)[1]) == ["a", "one"]
    assert texts(store.show_version(follow)) == ["a", "1", "b", "2"]


def test_where_a_version_is_deleted_the_other_one_is_shown(store: ChatStore, chat: int) -> None:
    question, _ = exchange(store, chat, "a", "1")
    begun = store.begin_edited(question, "b")
    store.finish_message(begun.answer.id, "2")
    deleted, left = store.delete_turn(begun.answer.id)
    assert texts(left) == ["a", "1"]
    exchange(store, chat, "more", "3")
    assert texts(store.restore_turn(deleted.id)[1]) == ["b", "2"]
    assert texts(store.show_version(question)) == ["a", "1", "more", "3"]
    _, left = store.delete_turn(question)
    assert texts(left) == ["more", "3"]


def test_a_deleted_turn_comes_back_beside_what_was_written_meanwhile(store: ChatStore, chat: int) -> None:
    exchange(store, chat, "a", "1")
    question, _ = exchange(store, chat, "b", "2")
    deleted, _ = store.delete_turn(question)
    later, _ = exchange(store, chat, "c", "3")
    rows = store.restore_turn(deleted.id)[1]
    assert texts(rows) == ["a", "1", "b", "2"]
    assert rows[2].versions == (question, later)


def test_deleting_the_only_turn_leaves_an_empty_chat(store: ChatStore, chat: int) -> None:
    question, _ = exchange(store, chat, "a", "needle")
    deleted, left = store.delete_turn(question)
    assert left == []
    assert store.conversations("needle") == []
    store.delete(chat)
    store.undelete(chat)
    assert texts(store.restore_turn(deleted.id)[1]) == ["a", "needle"]
    assert len(store.conversations("needle")) == 1


def test_what_is_gone_cannot_be_changed(store: ChatStore, chat: int) -> None:
    for change in (
        lambda: store.begin_edited(9, "x"),
        lambda: store.edit_answer(9, "x"),
        lambda: store.begin_other_answer(9),
        lambda: store.begin_continuation(9),
        lambda: store.show_version(9),
        lambda: store.delete_turn(9),
    ):
        with pytest.raises(StorageError, match="no longer exists"):
            change()
