"""Disk full, read-only, in use: told in words, and nothing that was saved is lost."""

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.storage import ChatStore, DamagedError, StorageError
from app.storage.errors import from_sqlite

LONG = "long text " * 3000


def fill(store: ChatStore, chat: int) -> int:
    """Add messages until the disk is full; the number that was acknowledged."""
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 40}")
    saved = 0
    with pytest.raises(StorageError) as caught:  # noqa: PT012 - which of the messages fails is not known
        for saved in range(100):
            store.add_message(chat, "user", f"{saved} {LONG}")
    assert caught.value.what == "The message could not be saved."
    assert "full" in caught.value.why
    assert "Free some space" in caught.value.action
    return saved


def test_a_full_disk_keeps_what_was_saved(store: ChatStore, reopen: Callable[[], ChatStore]) -> None:
    chat = store.create_conversation("x").id
    saved = fill(store, chat)
    assert saved > 0
    assert [row.content for row in store.messages(chat)] == [f"{number} {LONG}" for number in range(saved)]

    store._db.execute("PRAGMA max_page_count = 1000000")  # some space has been freed
    store.add_message(chat, "user", "works again")
    assert len(store.messages(chat)) == saved + 1
    store.close()
    assert len(reopen().messages(chat)) == saved + 1


def test_an_answer_that_does_not_fit_can_be_saved_later(store: ChatStore) -> None:
    chat = store.create_conversation("x").id
    answer = store.begin_exchange(chat, "Q").answer
    store.update_partial(answer.id, "the begin")
    fill(store, chat)
    whole = "the beginning and " + 20 * LONG
    for save in (store.update_partial, store.finish_message):
        with pytest.raises(StorageError, match="full"):
            save(answer.id, whole)
    assert store.messages(chat)[1].content == "the begin"  # as before, and still to be finished
    store._db.execute("PRAGMA max_page_count = 1000000")
    assert store.finish_message(answer.id, whole).content == whole


def test_a_folder_that_became_read_only(store: ChatStore) -> None:
    chat = store.create_conversation("x").id
    store._db.execute("PRAGMA query_only = ON")  # SQLite reports it in the same way
    changes: tuple[Callable[[], object], ...] = (
        lambda: store.add_message(chat, "user", "x"),
        lambda: store.begin_exchange(chat, "x"),
        lambda: store.create_conversation(),
        lambda: store.rename(chat, "y"),
        lambda: store.save_draft(chat, "y"),
        lambda: store.save_edit(1, "y"),
        lambda: store.save_next(chat, "y"),
    )
    for change in changes:
        with pytest.raises(StorageError) as caught:
            change()
        assert "may not write" in caught.value.why
        assert "permissions" in caught.value.action
    assert store.conversation(chat).title == "x"


def test_another_program_that_never_lets_go(store: ChatStore, database: Path) -> None:
    chat = store.create_conversation("x").id
    store._db.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="Another program"):
        store.add_message(chat, "user", "x")
    assert store.messages(chat) == []  # reading goes on
    other.execute("COMMIT")
    other.close()
    store.add_message(chat, "user", "x")


def test_a_store_used_from_another_thread_says_so(store: ChatStore) -> None:
    errors: list[BaseException] = []

    def use() -> None:
        try:
            store.conversations()
        except StorageError as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "thread" in str(errors[0])


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(("free", "words"), [(0, "is full"), (2**30, "disk I/O error")])
def test_an_io_error_on_a_full_disk_says_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, words: str
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    error = from_sqlite(sqlite_error(sqlite3.SQLITE_IOERR_SHMSIZE), "What.", tmp_path / "x")
    assert words in error.why
    assert error.action


def test_an_io_error_on_a_disk_that_is_gone(tmp_path: Path) -> None:
    error = from_sqlite(sqlite_error(sqlite3.SQLITE_IOERR_READ), "What.", tmp_path / "gone" / "x")
    assert "disk I/O error" in error.why


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="Windows says it in another way")
@pytest.mark.parametrize("code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN])
def test_a_disk_that_can_only_be_read_is_no_lack_of_permission(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    error = from_sqlite(sqlite_error(code), "What.", tmp_path / "x")
    assert f"{tmp_path} is on a disk that can only be read" in error.why
    assert "permission" not in str(error)
    assert error.action


def test_damage_found_later_asks_for_a_restart(tmp_path: Path) -> None:
    error = from_sqlite(sqlite_error(sqlite3.SQLITE_CORRUPT_INDEX), "What.", tmp_path / "x")
    assert isinstance(error, DamagedError)
    assert "Start the program again" in error.action
