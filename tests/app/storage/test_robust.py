"""Versions, searches and the archive when the disk, the clock, the log or another window misbehaves."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.storage import ChatStore, StorageError, open_in_memory, open_store
from app.storage.schema import MIGRATIONS, version_of

RELEASED = sorted((Path(__file__).parent / "released").glob("v*.sql"))
LONG = "long text " * 3000


def exchange(store: ChatStore, chat: int, question: str, answer: str) -> tuple[int, int]:
    begun = store.begin_exchange(chat, question)
    store.finish_message(begun.answer.id, answer)
    return begun.history[-1].id, begun.answer.id


def state_of(store: ChatStore) -> list[object]:
    """Everything that is saved about the chats, in values that can be compared."""
    lines = [line for which in (False, True) for line in store.conversations(archived=which)]
    return [(line.conversation, store.messages(line.conversation.id, all_versions=True)) for line in lines]


def change_at_random(store: ChatStore, chat: int, luck: random.Random) -> None:
    rows = store.messages(chat)
    row = luck.choice(rows) if rows else None
    what = luck.randrange(7)
    if what == 0 or row is None:
        exchange(store, chat, f"question {luck.random()}", f"answer {luck.random()}")
    elif what == 1 and row.role == "user":
        store.finish_message(store.begin_edited(row.id, f"edited {luck.random()}").answer.id, "new answer")
    elif what == 2 and row.role == "assistant":
        store.edit_answer(row.id, f"put right {luck.random()}")
    elif what == 3:
        store.show_version(luck.choice(row.versions))
    elif what == 4:
        store.delete_turn(row.id)
    elif what == 5:
        store.pin(chat, luck.random() < 0.5)
    else:
        store.index_some()


@pytest.mark.parametrize("seed", range(20))
def test_a_log_cut_anywhere_leaves_one_of_the_states_that_were(database: Path, clock: Any, seed: int) -> None:
    luck = random.Random(seed)
    store = open_store(database, clock).store
    store._db.execute("PRAGMA wal_autocheckpoint = 0")  # all of it stays in the log
    chat = store.create_conversation("x").id
    states = [[], state_of(store)]
    for _ in range(25):
        change_at_random(store, chat, luck)
        states.append(state_of(store))
    log = database.with_name(f"{database.name}-wal").read_bytes()
    content = database.read_bytes()
    for number in range(5):
        copy = database.parent / f"copy{number}" / database.name
        copy.parent.mkdir()
        copy.write_bytes(content)
        cut = luck.randrange(len(log))
        torn = luck.randbytes(luck.randrange(200)) if luck.random() < 0.5 else b""
        copy.with_name(f"{copy.name}-wal").write_bytes(log[:cut] + torn)
        opened = open_store(copy, clock)
        assert opened.notices == ()
        found = state_of(opened.store)
        # An answer under way between two of the states counts as interrupted at the next start.
        assert found in states or opened.interrupted
        for line in opened.store.conversations("question"):
            assert line.place is not None
        exchange(opened.store, opened.store.create_conversation("works").id, "q", "findable")
        assert len(opened.store.conversations("findable")) == 1
        opened.store.close()
    store.close()


def test_whatever_does_not_fit_on_a_full_disk_changes_nothing(store: ChatStore) -> None:
    chat = store.create_conversation("x").id
    question, answer = exchange(store, chat, LONG, LONG)
    while store.index_some():
        pass
    deleted, _ = store.delete_turn(question)
    store.restore_turn(deleted.id)
    before = state_of(store)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"):  # noqa: PT012 - which one is not known
        for _ in range(1000):  # into the free pages inside of the file, too
            store._db.execute("INSERT INTO draft (content) VALUES (?)", (LONG,))
    for operation in (
        lambda: store.begin_edited(question, LONG),
        lambda: store.edit_answer(answer, LONG + "changed"),
        lambda: store.duplicate(chat),
    ):
        with pytest.raises(StorageError, match="full"):
            operation()
    assert state_of(store) == before
    store._db.execute("PRAGMA max_page_count = 1000000")
    assert store.duplicate(chat).title == "x (copy)"
    assert store.edit_answer(answer, "works again")[-1].content == "works again"


def test_a_read_only_database_can_be_read_and_says_why_it_cannot_be_changed(store: ChatStore) -> None:
    chat = store.create_conversation("x").id
    question, answer = exchange(store, chat, "q", "needle")
    assert len(store.conversations("needle")) == 1
    store._db.execute("PRAGMA query_only = ON")  # SQLite reports it in the same way
    for operation in (
        lambda: store.begin_edited(question, "x"),
        lambda: store.begin_other_answer(answer),
        lambda: store.begin_continuation(answer),
        lambda: store.delete_turn(question),
        lambda: store.show_version(answer),
        lambda: store.pin(chat, True),
        lambda: store.archive(chat, True),
        lambda: store.duplicate(chat),
    ):
        with pytest.raises(StorageError, match="may not write"):
            operation()
    assert len(store.conversations("needle")) == 1
    assert [row.content for row in store.messages(chat)] == ["q", "needle"]


def test_a_copy_in_memory_of_chats_that_cannot_be_opened_can_be_searched(database: Path, clock: Any) -> None:
    store = open_store(database, clock).store
    exchange(store, store.create_conversation("x").id, "q", "needle")
    store.close()
    copy = open_in_memory(database, clock).store
    assert [line.conversation.title for line in copy.conversations("needle")] == ["x"]
    copy.close()


@pytest.mark.parametrize("seed", range(6))
def test_two_windows_work_on_one_chat(reopen: Callable[[], ChatStore], seed: int) -> None:
    luck = random.Random(seed)
    windows = [reopen(), reopen()]
    chat = windows[0].create_conversation("x").id
    for _ in range(30):
        change_at_random(luck.choice(windows), chat, luck)
    assert state_of(windows[0]) == state_of(windows[1])
    shown = windows[0].messages(chat)
    assert [row.parent for row in shown] == [None, *(row.id for row in shown)][: len(shown)]
    assert windows[0].conversations("question") == windows[1].conversations("question")


def test_a_clock_that_jumps_changes_no_order(store: ChatStore, clock: Any) -> None:
    chat = store.create_conversation("x").id
    question, _ = exchange(store, chat, "one", "1")
    clock.now -= timedelta(days=20_000)  # before 1972
    exchange(store, chat, "two", "2")
    clock.now += timedelta(days=40_000)
    store.finish_message(store.begin_edited(question, "three").answer.id, "3")
    clock.now -= timedelta(days=36_500)  # before 1970: saved as 1970
    exchange(store, chat, "four", "4")
    assert [row.content for row in store.messages(chat)] == ["three", "3", "four", "4"]
    assert [row.content for row in store.show_version(question)] == ["one", "1", "two", "2"]
    other = store.create_conversation("y").id
    assert [line.conversation.id for line in store.conversations()] == [other, chat]


def test_a_clock_before_the_deletion_purges_nothing(store: ChatStore, clock: Any) -> None:
    chat = store.create_conversation("x").id
    store.delete(chat)
    clock.now -= timedelta(days=400)
    assert store.purge() == 0
    assert store.undelete(chat).title == "x"


@pytest.mark.parametrize("script", RELEASED, ids=lambda path: path.stem)
def test_a_migration_that_is_cut_off_is_begun_again(tmp_path: Path, script: Path) -> None:
    """After each statement in turn the program dies; the next start finds the old file, or the new one."""
    source = tmp_path / "old.sqlite3"
    with closing(sqlite3.connect(source)) as connection:
        connection.executescript(script.read_text("utf-8"))
    begun = version_at(source)
    statements = sum(len(steps) for steps in MIGRATIONS[begun:])
    for survived in range(statements + 1):
        path = tmp_path / str(survived) / "chats.sqlite3"
        path.parent.mkdir()
        path.write_bytes(source.read_bytes())
        with closing(sqlite3.connect(path, isolation_level=None)) as dying:
            dying.execute("PRAGMA journal_mode = WAL")
            dying.execute("BEGIN IMMEDIATE")
            for statement in [text for steps in MIGRATIONS[begun:] for text in steps][:survived]:
                dying.execute(statement)
        assert version_at(path) == begun
        opened = open_store(path)
        assert version_of(opened.store._db) == len(MIGRATIONS)
        assert len(opened.store.conversations("rome")) == 1
        opened.store.close()


def version_at(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return version_of(connection)
