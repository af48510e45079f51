from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from app.attachments.form import Attachment, Parts, compose, parse
from app.storage import ChatStore


def test_a_message_waits_in_each_chat_across_starts(
    store: ChatStore, reopen: Callable[[], ChatStore]
) -> None:
    chat = store.create_conversation()
    store.save_next(chat.id, "first thought")
    store.save_next(chat.id, "second thought")
    store.save_next(None, "for a new chat")
    store.close()
    store = reopen()
    assert store.next_message(chat.id) == "second thought"
    assert store.next_message(None) == "for a new chat"
    store.save_next(chat.id, "")
    assert store.next_message(chat.id) == ""
    assert store.next_message(None) == "for a new chat"


def test_what_waited_is_put_in_front_of_the_draft(store: ChatStore) -> None:
    chat = store.create_conversation().id
    note, table = Attachment("note.txt", "x"), Attachment("table.csv", "1,2")
    store.save_next(chat, compose([note], "and then?"))
    store.save_draft(chat, compose([table], "half a sen"))
    merged = store.take_back_next(chat)
    assert parse(merged) == Parts((note, table), "and then?\nhalf a sen")
    assert store.draft(chat) == merged
    assert store.next_message(chat) == ""
    assert store.take_back_next(chat) == merged  # nothing waits: nothing changes


def test_what_waits_goes_with_its_chat(store: ChatStore, clock: Any) -> None:
    chat = store.create_conversation().id
    store.save_next(chat, "waits")
    store.delete(chat)
    clock.now += timedelta(days=8)
    store.purge()
    assert store.next_message(chat) == ""


def test_files_of_a_draft_are_not_written_again_with_each_word(store: ChatStore) -> None:
    chat = store.create_conversation().id
    files = [Attachment("large.txt", "word " * 200_000), Attachment("note.txt", "x")]
    written: list[str] = []
    store._db.set_trace_callback(written.append)
    for typed in ("", "W", "When", "When?", "", "Wh"):
        store.save_draft(chat, compose(files, typed))
        assert store.draft(chat) == compose(files, typed)
    store._db.set_trace_callback(None)
    assert len([sql for sql in written if sql.startswith("INSERT INTO draft_files")]) == 1
    store.save_draft(chat, compose(files[1:], "When?"))
    assert parse(store.draft(chat)) == Parts((files[1],), "When?")
    store.save_draft(None, "Attached file: nothing")
    assert store.draft(None) == "Attached file: nothing"
    for text in ("When?", ""):
        store.save_draft(chat, text)
        assert store.draft(chat) == text


def test_a_draft_of_an_older_version_has_its_files_among_the_words(store: ChatStore) -> None:
    old, note = compose([Attachment("old.txt", "x")], "And"), Attachment("note.txt", "y")
    store._db.execute("INSERT INTO draft (conversation_id, content) VALUES (NULL, ?)", (old,))
    assert store.draft(None) == old
    store.save_draft(None, compose([note, *parse(old).attachments], "And then?"))
    assert parse(store.draft(None)).text == "And then?"
    assert [file.name for file in parse(store.draft(None)).attachments] == ["note.txt", "old.txt"]


def test_a_draft_of_a_chat_that_is_gone_for_good_is_no_trouble(store: ChatStore) -> None:
    chat = store.create_conversation().id
    store.delete(chat)
    store.remove_for_good([chat], [])
    store.save_draft(chat, compose([Attachment("note.txt", "x")], "typed"))  # else it is tried each second
    assert store.draft(chat) == ""
