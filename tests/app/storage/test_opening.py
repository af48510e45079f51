import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.storage import ChatStore, MessageState, StorageError, open_in_memory, open_store
from app.storage.schema import MIGRATIONS
from engine.file_lock import FileLock
from tests.app.storage.damaged import (
    filled,
    rescued,
    usable,
)


def test_a_fresh_file_is_private_and_says_whose_it_is(database: Path) -> None:
    opened = open_store(database)
    assert opened.saved
    assert not opened.notices
    assert not opened.interrupted
    opened.store.close()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone()[0] == int.from_bytes(b"FiCh", "big")
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    if sys.platform != "win32":
        assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_the_file_of_a_newer_version_is_left_alone(database: Path) -> None:
    open_store(database).store.close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StorageError, match="newer version") as caught:
        open_store(database)
    assert "Install" in caught.value.action
    assert list(database.parent.glob("*.damaged-*")) == []


def test_no_folder_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as caught:
        open_store(tmp_path / "file" / "chats.sqlite3")
    assert caught.value.why
    assert caught.value.action


def test_a_folder_in_the_files_place(tmp_path: Path) -> None:
    (tmp_path / "chats.sqlite3").mkdir()
    with pytest.raises(StorageError) as caught:
        open_store(tmp_path / "chats.sqlite3")
    assert caught.value.action


def test_two_windows_open_and_write_in_turn(reopen: Callable[[], ChatStore]) -> None:
    one, two = reopen(), reopen()
    chat = one.create_conversation("shared")
    answer = one.begin_exchange(chat.id, "from one").answer
    two.add_message(chat.id, "user", "from two")
    assert two.recover_interrupted() == []
    one.finish_message(answer.id, "answer")
    assert [row.content for row in two.messages(chat.id)] == ["from one", "answer", "from two"]


def test_an_answer_taken_for_dead_can_still_be_finished(reopen: Callable[[], ChatStore]) -> None:
    one, two = reopen(), reopen()
    chat = one.create_conversation()
    answer = one.begin_exchange(chat.id, "Q").answer
    one._run.release()  # as on a file system that forgets locks
    assert [row.state for row in two.recover_interrupted()] == [MessageState.INTERRUPTED]
    one.update_partial(answer.id, "A")
    assert one.finish_message(answer.id, "AB").state is MessageState.COMPLETE


def test_a_second_window_waits_while_the_first_opens(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database.parent.mkdir()
    lock = FileLock(database.with_name(f"{database.name}.opening"))
    assert lock.acquire()
    monkeypatch.setattr("app.storage.opening._OPEN_SECONDS", 0.1)
    with pytest.raises(StorageError, match="Another window"):
        open_store(database)
    lock.release()
    open_store(database).store.close()


def test_a_full_disk_at_the_start_does_not_hide_the_chats(
    database: Path, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = filled(database, clock, chats=2, messages=2)
    full = StorageError(
        "Interrupted answers could not be marked.", why="The disk is full.", action="Free some."
    )

    def refuse(_: ChatStore) -> None:
        raise full

    monkeypatch.setattr(ChatStore, "recover_interrupted", refuse)
    opened = open_store(database, clock)
    assert [str(notice) for notice in opened.notices] == [str(full)]
    assert rescued(opened.store) == texts
    opened.store.close()


def test_chats_that_cannot_be_opened_can_be_read_as_a_copy(database: Path, clock: Any) -> None:
    texts = filled(database, clock, chats=2, messages=2)
    writing = open_store(database, clock).store  # leaves the newest in the log
    answer = writing.begin_exchange(1, "asked").answer
    before = {path.name: path.read_bytes() for path in database.parent.glob("*.sqlite3*") if path.is_file()}
    opened = open_in_memory(database, clock)
    assert not opened.saved
    found = rescued(opened.store)
    assert texts.items() <= found.items()
    assert found[answer.id] == ""
    assert opened.store.messages(1)[-1].state is MessageState.INTERRUPTED
    assert usable(opened.store)
    opened.store.close()
    after = {path.name: path.read_bytes() for path in database.parent.glob("*.sqlite3*") if path.is_file()}
    assert after == before
    writing.close()


def test_a_copy_of_older_chats_leaves_nothing_on_the_disk(
    database: Path, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    database.parent.mkdir(exist_ok=True)
    released = Path(__file__).parent / "released" / "v1.sql"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(released.read_text("utf-8"))
    opened = open_in_memory(database, clock)
    assert opened.store.conversations() != []
    opened.store.close()
    assert list(here.iterdir()) == []  # a backup of what is in memory would lie there


@pytest.mark.parametrize("content", [None, b"damaged", b""])
def test_a_copy_of_what_cannot_be_read_is_empty(database: Path, content: bytes | None) -> None:
    database.parent.mkdir()
    if content is not None:
        database.write_bytes(content)
    opened = open_in_memory(database)
    assert opened.store.conversations() == []
    assert usable(opened.store)
    opened.store.close()


def test_in_memory_everything_works_but_the_file() -> None:
    opened = open_in_memory()
    assert not opened.saved
    assert usable(opened.store)
    assert opened.store.recover_interrupted() == []
    opened.store.close()


@pytest.mark.parametrize("operation", ["recover_interrupted", "conversations"])
def test_a_copy_that_fails_later_leaves_an_empty_store_and_the_program_goes_on(
    database: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    filled(database, clock, chats=1, messages=1)
    real, calls = getattr(ChatStore, operation), []

    def damaged_once(store: ChatStore, **which: Any) -> Any:
        calls.append(operation)
        if len(calls) == 1:
            raise StorageError("The chats could not be read.", why="A page is damaged.")
        return real(store, **which)

    monkeypatch.setattr(ChatStore, operation, damaged_once)
    opened = open_in_memory(database, clock)
    assert opened.store.conversations() == []
    assert usable(opened.store)
    opened.store.close()
