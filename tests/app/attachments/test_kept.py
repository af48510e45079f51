"""Files in messages, on their way through exports, imports, copies and searches: nothing knows of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from app.attachments.form import Attachment, Parts, compose, parse
from app.export import to_html, to_json, to_markdown, to_text
from app.importing.our_json import read_ours
from app.storage import ChatStore
from app.storage.incoming import insert_chat

NOW = datetime(2026, 2, 3, tzinfo=UTC)
FILE = Attachment("years of Rome.py", "print(-753)  # ``` <b>")
MESSAGE = compose([FILE], "When was it *founded*?")


def filled(store: ChatStore) -> int:
    chat = store.create_conversation("Rome").id
    store.add_message(chat, "user", MESSAGE)
    store.add_message(chat, "assistant", "In 753 BC.")
    return chat


def test_json_brings_files_back(store: ChatStore) -> None:
    chat = filled(store)
    document = to_json(store.conversation(chat), store.messages(chat), NOW)
    again = insert_chat(store, read_ours(json.loads(document)))
    assert [row.content for row in store.messages(again.id)] == [MESSAGE, "In 753 BC."]
    assert parse(store.messages(again.id)[0].content) == Parts((FILE,), "When was it *founded*?")


def test_texts_for_readers_have_name_and_content(store: ChatStore) -> None:
    chat = filled(store)
    conversation, rows = store.conversation(chat), store.messages(chat)
    assert MESSAGE in to_markdown(conversation, rows)
    assert FILE.content in to_text(conversation, rows)


def test_a_web_page_folds_files_away(store: ChatStore) -> None:
    chat = filled(store)
    page = to_html(store.conversation(chat), store.messages(chat))
    assert "<summary>Attached file years of Rome.py, 1 line</summary>" in page
    assert "&lt;b&gt;" in page
    assert "<em>founded</em>" in page
    assert "Attached file: years" not in page


def test_the_list_shows_what_was_typed_or_else_the_names(store: ChatStore) -> None:
    chat = store.create_conversation("Rome").id
    large = Attachment("large.txt", "word " * 100_000)
    for message, preview in (
        (compose([large, FILE], "When was it\n*founded*?"), "When was it *founded*?"),
        (compose([large, FILE], ""), "large.txt, years of Rome.py"),
        ("Attached file: not quite", "Attached file: not quite"),
    ):
        store.add_message(chat, "user", message)
        assert store.conversations()[0].preview == preview
    store.delete(chat)
    assert store.deleted()[0][0].preview == "Attached file: not quite"


def test_searches_find_names_and_contents(store: ChatStore) -> None:
    chat = filled(store)
    for sought in ("years of rome.py", "print(-753)", "founded"):
        assert [line.conversation.id for line in store.conversations(sought)] == [chat]


def test_copies_and_versions_have_the_files(store: ChatStore) -> None:
    chat = filled(store)
    copy = store.duplicate(chat)
    assert store.messages(copy.id)[0].content == MESSAGE
    edited = store.begin_edited(store.messages(chat)[0].id, compose([FILE], "And when did it end?"))
    assert parse(edited.history[-1].content).attachments == (FILE,)
