from typing import Any

import pytest

from app.storage import ChatStore, MessageState, StorageError


def titles(store: ChatStore, **which: Any) -> list[str]:
    return [line.conversation.title for line in store.conversations(**which)]


def test_pinned_chats_come_first_each_kind_by_its_last_change(store: ChatStore) -> None:
    a, b, _, _ = (store.create_conversation(name) for name in "abcd")
    assert store.pin(a.id, True).pinned
    store.pin(b.id, True)
    assert titles(store) == ["b", "a", "d", "c"]
    store.add_message(a.id, "user", "x")
    assert titles(store) == ["a", "b", "d", "c"]
    assert not store.pin(a.id, False).pinned
    assert titles(store) == ["b", "a", "d", "c"]


def test_the_archive_is_a_list_of_its_own(store: ChatStore) -> None:
    a, _ = (store.create_conversation(name) for name in "ab")
    store.add_message(a.id, "user", "needle")
    assert store.archive(a.id, True).archived
    assert (titles(store), titles(store, archived=True)) == (["b"], ["a"])
    assert titles(store, archived=None) == ["a", "b"]
    assert titles(store, search="needle") == ["a"]
    assert store.archived_count() == 1
    store.delete(a.id)
    assert store.archived_count() == 0
    assert titles(store, archived=True) == []
    store.undelete(a.id)
    assert not store.archive(a.id, False).archived
    assert titles(store) == ["a", "b"]


def test_what_is_gone_can_be_neither_pinned_nor_copied(store: ChatStore) -> None:
    for operation in (lambda: store.pin(9, True), lambda: store.archive(9, True), lambda: store.duplicate(9)):
        with pytest.raises(StorageError, match="no longer exists"):
            operation()


def test_a_copy_has_all_versions_and_leads_its_own_life(store: ChatStore) -> None:
    chat = store.create_conversation("Rome", model="starter", system_prompt="Be brief.")
    store.pin(chat.id, True)
    first = store.begin_exchange(chat.id, "When?").answer
    store.finish_message(first.id, "In 753.", note="a note")
    store.begin_regeneration(chat.id)  # still being written
    copy = store.duplicate(chat.id)
    assert (copy.title, copy.model, copy.system_prompt) == ("Rome (copy)", "starter", "Be brief.")
    assert not copy.pinned
    assert titles(store) == ["Rome", "Rome (copy)"]
    rows = store.messages(copy.id, all_versions=True)
    assert [(row.content, row.active, row.state) for row in rows] == [
        ("When?", True, MessageState.COMPLETE),
        ("In 753.", False, MessageState.COMPLETE),
        ("", True, MessageState.INTERRUPTED),
    ]
    assert [row.parent for row in rows] == [None, rows[0].id, rows[0].id]
    assert rows[1].note == "a note"
    assert rows[1].finished is not None
    store.add_message(copy.id, "user", "only here")
    assert len(store.messages(chat.id)) == 2
    assert titles(store, search="only here") == ["Rome (copy)"]
    assert titles(store, search="753") == []  # neither chat shows that version
    store.delete(chat.id)
    assert len(store.messages(copy.id)) == 3


@pytest.mark.parametrize("title", ["", "  \n"])
def test_a_name_without_a_character_takes_no_name_away(store: ChatStore, title: str) -> None:
    chat = store.create_conversation("Rome")
    assert store.rename_unless_renamed(chat, title) is None
    assert store.conversation(chat.id).title == "Rome"


def test_a_model_whose_name_is_no_unicode_can_be_chatted_with(store: ChatStore) -> None:
    name = "mixtral-\udcff"  # of a folder, as Python reads names that are not UTF-8
    chat = store.create_conversation("x", name, parameters={"preset": name})
    answer = store.begin_exchange(chat.id, "q", model=name).answer
    assert chat.model == answer.model == "mixtral-\ufffd"
    assert chat.parameters == {"preset": "mixtral-\ufffd"}
