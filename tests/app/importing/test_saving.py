from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.importing.outcome import LeftOut, Refused
from app.importing.saving import save_chats
from app.importing.words import Imported, missing_words, taken_words
from app.storage import ChatStore, Conversation, StorageError
from app.storage.incoming import IncomingChat, IncomingMessage, insert_chat
from engine.progress import CancelToken, Progress, ignore_progress

START = datetime(2026, 1, 2, tzinfo=UTC)
NEW = IncomingChat("new", START, START + timedelta(days=2), messages=(IncomingMessage("user", "x", START),))
OLD = replace(NEW, title="old", updated=START + timedelta(days=1))


def test_the_latest_comes_first_in_the_list(store: ChatStore) -> None:
    seen: list[Progress] = []
    imported = save_chats(
        [NEW, OLD], Imported(skipped=1), lambda chat: insert_chat(store, chat), seen.append, CancelToken()
    )
    assert [line.conversation.title for line in store.conversations()] == ["new", "old"]
    assert (len(imported.chats), imported.messages, imported.waiting) == (2, 2, 0)
    assert [(step.done, step.total) for step in seen] == [(0, 2), (1, 2)]
    assert taken_words(imported) == "Imported: 2 chats, 2 messages."
    assert missing_words(imported) == ["1 chat was here already and was not imported again."]


def test_what_was_saved_before_a_full_disk_stays(store: ChatStore) -> None:
    def insert(chat: IncomingChat) -> Conversation:
        if chat is NEW:
            raise StorageError("The chat could not be saved.", why="The disk is full.")
        return insert_chat(store, chat)

    imported = save_chats([NEW, OLD], Imported(), insert, ignore_progress, CancelToken())
    assert (len(imported.chats), imported.waiting) == (1, 1)
    assert not imported.complete
    assert missing_words(imported) == [
        "Then 1 chat was not saved. The chat could not be saved. The disk is full."
    ]


def test_a_cancelled_import_says_how_far_it_came(store: ChatStore) -> None:
    token = CancelToken()

    def insert(chat: IncomingChat) -> Conversation:
        token.cancel()
        return insert_chat(store, chat)

    imported = save_chats([NEW, OLD, OLD], Imported(), insert, ignore_progress, token)
    assert (len(imported.chats), imported.waiting, imported.cancelled) == (1, 2, True)
    assert missing_words(imported) == ["You cancelled: 2 chats were not imported."]


def test_the_report_names_everything_that_is_missing() -> None:
    left_out = Counter({kind: number for number, kind in enumerate(LeftOut, 1)})
    refused = tuple(Refused(f"chat {number}", "it is damaged") for number in range(10))
    things, parts = missing_words(Imported(left_out=left_out, refused=refused))
    for words in ("1 picture", "2 attached files", "3 messages of tools", "4 notes", "5 hidden", "6 other"):
        assert words in things
    assert parts.startswith("10 files or chats could not be imported:\n• chat 0: it is damaged\n")
    assert "… and 2 more" in parts
    assert taken_words(Imported()) == "No chat was imported."
