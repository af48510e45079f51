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
