import os
import random
import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.storage import ChatStore, MessageState, StorageError, open_in_memory, open_store
from app.storage.runs import FileLock
from app.storage.schema import MIGRATIONS

PAGE = 4096


def filled(database: Path, clock: Any, chats: int = 12, messages: int = 30) -> dict[int, str]:
    """A database of some hundred pages; the messages' texts by id."""
    store = open_store(database, clock).store
    store._db.execute("PRAGMA synchronous = OFF")  # nothing is killed here: hundreds of fsyncs for nothing
    texts: dict[int, str] = {}
    for number in range(chats):
        chat = store.create_conversation(f"chat {number}")
        for _ in range(messages):
            row = store.add_message(chat.id, "user", f"message {len(texts)} " + "x" * 900)
            texts[row.id] = row.content
    store.save_draft(None, "unsent")
    store.save_next(chat.id, "waits")
    store.save_edit(1, "changed")
    store.delete_turn(store.add_message(chat.id, "user", "in the trash").id)
    store.close()
    return texts


def rescued(store: ChatStore) -> dict[int, str]:
    return {
        row.id: row.content
        for line in store.conversations()
        for row in store.messages(line.conversation.id, all_versions=True)
    }


def set_aside(database: Path) -> Path:
    (aside,) = (
        path for path in database.parent.glob("*.damaged-*") if not path.name.endswith(("-wal", "-shm"))
    )
    return aside


def usable(store: ChatStore) -> bool:
    chat = store.create_conversation("after")
    store.add_message(chat.id, "user", "hello")
    return [row.content for row in store.messages(chat.id)] == ["hello"]


def overwrite(database: Path, offset: int, data: bytes) -> bytes:
    content = bytearray(database.read_bytes())
    content[offset : offset + len(data)] = data
    database.write_bytes(content)
    return bytes(content)


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


@pytest.mark.parametrize(
    "content", [b"not a database at all", b"SQLite format 3\0" + b"\xff" * 5000, os.urandom(3 * PAGE)]
)
def test_a_file_that_is_no_database_is_set_aside(database: Path, content: bytes) -> None:
    database.parent.mkdir()
    database.write_bytes(content)
    opened = open_store(database)
    (notice,) = opened.notices
    assert set_aside(database).read_bytes() == content
    assert str(set_aside(database)) in notice.action
    assert "empty list" in notice.why
    assert usable(opened.store)
    opened.store.close()


def test_an_empty_file_is_a_fresh_start(database: Path) -> None:
    database.parent.mkdir()
    database.touch()
    opened = open_store(database)
    assert opened.notices == ()
    assert usable(opened.store)
    opened.store.close()


def test_another_programs_database_is_not_touched(database: Path) -> None:
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as other:
        other.execute("CREATE TABLE message (something)")
    opened = open_store(database)
    (notice,) = opened.notices
    assert "not a database of this program" in notice.why
    with closing(sqlite3.connect(set_aside(database))) as other:
        assert other.execute("SELECT count(*) FROM message").fetchone() == (0,)
    opened.store.close()


def test_one_bad_page_costs_its_own_rows_alone(database: Path, clock: Any) -> None:
    texts = filled(database, clock)
    pages = database.stat().st_size // PAGE
    with closing(sqlite3.connect(database)) as connection:
        where = connection.execute("SELECT rootpage FROM sqlite_master WHERE type = 'table'").fetchall()
    roots = {root for (root,) in where}
    bad = next(page for page in range(pages // 2, pages) if page not in roots)
    content = overwrite(database, (bad - 1) * PAGE, b"\xee" * PAGE)

    opened = open_store(database, clock)
    (notice,) = opened.notices
    assert set_aside(database).read_bytes() == content
    found = rescued(opened.store)
    assert found.items() <= texts.items()
    assert len(texts) - 8 <= len(found) < len(texts)  # four messages share a page
    assert f"{len(found)} messages" in notice.why
    assert "12 chats" in notice.why
    assert [line.conversation.title for line in opened.store.conversations()] == [
        f"chat {number}" for number in reversed(range(12))
    ]
    assert opened.store.draft(None) == "unsent"
    assert opened.store.next_message(12) == "waits"
    assert opened.store.edits(1) == {1: "changed"}
    assert [turn.text for turn in opened.store.deleted()[1]] == ["in the trash"]
    assert usable(opened.store)
    opened.store.close()


def test_a_lost_table_of_chats_leaves_their_messages(database: Path, clock: Any) -> None:
    texts = filled(database, clock)
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'conversation'"
        root = connection.execute(query).fetchone()[0]
    overwrite(database, (root - 1) * PAGE, bytes(PAGE))
    opened = open_store(database, clock)
    assert rescued(opened.store) == texts
    assert {line.conversation.title for line in opened.store.conversations()} == {"Rescued chat"}
    assert len(opened.store.conversations()) == 12
    opened.store.close()


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_crash_while_replacing_loses_nothing(
    database: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    texts = filled(database, clock, chats=2, messages=10)
    overwrite(database, 40, b"\xff\xff\xff\xff")  # the schema's cookie alone: every page can still be read
    overwrite(database, 2 * PAGE + 2, b"\xff\xff")
    left = [renames]
    real = os.replace

    def crashing(source: Path, target: Path) -> None:
        if left[0] == 0:
            raise OSError(5, "power cut")
        left[0] -= 1
        real(source, target)

    monkeypatch.setattr("app.storage.replacing.os.replace", crashing)
    with pytest.raises(StorageError, match="power cut"):
        open_store(database, clock)
    monkeypatch.undo()
    opened = open_store(database, clock)
    assert ["has been replaced" in notice.what for notice in opened.notices] == [True]
    found = rescued(opened.store)
    assert found.items() <= texts.items()
    assert len(found) > len(texts) / 2
    assert set_aside(database).exists()
    assert list(database.parent.glob("*.rescu*")) == []
    opened.store.close()


def test_a_crash_between_file_and_log_leaves_no_foreign_log(database: Path, clock: Any) -> None:
    store = open_store(database, clock).store
    chat = store.create_conversation("rescued")
    store.close()
    os.replace(database, database.with_name(f"{database.name}.rescued"))
    database.with_name(f"{database.name}-wal").write_bytes(b"log of the damaged file")
    opened = open_store(database, clock)
    assert opened.store.conversation(chat.id).title == "rescued"
    logs = [path.read_bytes() for path in database.parent.glob("*.damaged-*-wal")]
    assert logs == [b"log of the damaged file"]
    opened.store.close()


def test_what_only_the_log_holds_is_rescued_too(database: Path, clock: Any) -> None:
    filled(database, clock)
    store = open_store(database, clock).store
    chat = store.create_conversation("in the log")
    row = store.add_message(chat.id, "user", "only in the log")
    # Copied while it is open: closing would move the log into the file.
    copy = database.parent / "copy" / database.name
    copy.parent.mkdir()
    for suffix in ("", "-wal"):
        copy.with_name(copy.name + suffix).write_bytes(
            database.with_name(database.name + suffix).read_bytes()
        )
    store.close()
    overwrite(copy, copy.stat().st_size // 2 // PAGE * PAGE, b"\xee" * PAGE)
    opened = open_store(copy, clock)
    assert len(opened.notices) == 1
    assert rescued(opened.store)[row.id] == "only in the log"
    opened.store.close()


@pytest.mark.parametrize(
    ("column", "value", "mended"),
    [
        ("created", "yesterday", "1970"),
        ("created", 2**60, "1970"),
        ("content", b"by\xffte", "by\ufffdte"),
        ("state", "odd", "interrupted"),
        ("role", "robot", "assistant"),
        ("active", 7, "True"),
    ],
)
def test_a_damaged_value_costs_no_text(
    database: Path, clock: Any, column: str, value: object, mended: str
) -> None:
    texts = filled(database, clock, chats=1, messages=3)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE message SET {column} = ? WHERE id = 2", (value,))
        connection.commit()
    opened = open_store(database, clock)
    assert len(opened.notices) == 1
    row = opened.store.messages(1)[1]
    assert str(getattr(row, column)).startswith(mended)
    assert column == "content" or row.content == texts[2]
    opened.store.close()


def test_what_the_check_does_not_see_is_read_as_far_as_it_goes(database: Path, clock: Any) -> None:
    filled(database, clock, chats=1, messages=3)
    content = database.read_bytes()
    overwrite(database, content.index(b"message 1 ") + 3, b"\xff\xfe")
    opened = open_store(database, clock)
    opened.store._db.execute("UPDATE message SET params = '{broken', stats = '[]' WHERE id = 3")
    rows = opened.store.messages(1)
    assert rows[1].content.startswith("mes\ufffd\ufffdge 1 ")
    assert rows[2].params is rows[2].stats is None
    opened.store.close()


@pytest.mark.parametrize("seed", range(12))
def test_random_damage_never_stops_the_program(database: Path, clock: Any, seed: int) -> None:
    texts = filled(database, clock, chats=3, messages=20)
    luck = random.Random(seed)
    size = database.stat().st_size
    for _ in range(luck.randrange(1, 6)):
        overwrite(database, luck.randrange(size), luck.randbytes(luck.randrange(1, 3000)))
    if luck.random() < 0.3:
        os.truncate(database, luck.randrange(size))
    opened = open_store(database, clock)
    assert set(rescued(opened.store)) <= set(texts)
    assert usable(opened.store)
    opened.store.close()
    again = open_store(database, clock)
    assert again.notices == ()
    again.store.close()


@pytest.mark.parametrize("seed", range(8))
def test_a_log_cut_short_leaves_a_sound_beginning(database: Path, clock: Any, seed: int) -> None:
    store = open_store(database, clock).store
    chat = store.create_conversation("x")
    for number in range(30):
        store.add_message(chat.id, "user", f"message {number}")
    copy = database.parent / "copy" / database.name
    copy.parent.mkdir()
    log = database.with_name(database.name + "-wal").read_bytes()
    copy.write_bytes(database.read_bytes())
    copy.with_name(copy.name + "-wal").write_bytes(log[: random.Random(seed).randrange(len(log))])
    store.close()
    opened = open_store(copy, clock)
    assert opened.notices == ()
    contents = list(rescued(opened.store).values())
    assert contents == [f"message {number}" for number in range(len(contents))]
    assert usable(opened.store)
    opened.store.close()


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
