"""Damaged files: what is rescued, what is set aside, and crashes meanwhile."""

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.storage import StorageError, open_store
from app.storage.thread import _open_or_remember
from tests.app.storage.damaged import (
    PAGE,
    filled,
    overwrite,
    rescued,
    set_aside,
    usable,
)


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
        ("seen_from", "odd", "None"),
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
    assert column == "content" or row.content == texts[row.id]
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


@pytest.mark.parametrize("column", ["model", "reason", "note"])
def test_a_lost_detail_costs_no_text(database: Path, clock: Any, column: str) -> None:
    texts = filled(database, clock, chats=1, messages=3)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        loose = f"replace(sql, '{column} TEXT NOT NULL', '{column} TEXT')"
        connection.execute(f"UPDATE sqlite_master SET sql = {loose} WHERE name = 'message'")
        connection.commit()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE message SET {column} = NULL, active = 7 WHERE id = 2")
        connection.commit()
    opened = open_store(database, clock)
    assert len(opened.notices) == 1
    assert rescued(opened.store) == texts
    assert getattr(opened.store.messages(1)[1], column) == ""
    opened.store.close()


def test_a_turn_in_the_trash_comes_back_after_a_rescue_whatever_was_written_since(
    database: Path, clock: Any
) -> None:
    filled(database, clock, chats=1, messages=3)  # its last message is in the trash
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE message SET active = 7 WHERE id = 2")
        connection.commit()
    store = open_store(database, clock).store
    (turn,) = store.deleted()[1]
    later = store.add_message(1, "user", "written later")
    _, rows = store.restore_turn(turn.id)
    assert "in the trash" in [row.content for row in rows]
    assert rescued(store)[later.id] == "written later"
    store.close()


def test_a_counter_that_claims_anything_is_not_believed(database: Path, clock: Any) -> None:
    texts = filled(database, clock, chats=1, messages=3)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE message SET active = 7 WHERE id = 2")
        connection.execute("UPDATE sqlite_sequence SET seq = 9999999 WHERE name = 'message'")
        connection.commit()
    store = open_store(database, clock).store
    assert rescued(store) == texts
    assert (
        store.add_message(1, "user", "goes on").id == len(texts) + 1
    )  # ids stay where a rescue looks for them
    store.close()


@pytest.mark.parametrize("error", [OSError(28, "No space left"), sqlite3.OperationalError("disk full")])
def test_damaged_chats_that_cannot_be_replaced_are_shown_as_far_as_they_go(
    database: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    texts = filled(database, clock)
    size = database.stat().st_size // PAGE
    for page in range(size // 2, size // 2 + 4):
        overwrite(database, page * PAGE, b"\xee" * PAGE)

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("app.storage.opening.replace_damaged", refuse)
    opened = _open_or_remember(database)
    assert not opened.saved
    assert "shown all the same" in opened.notices[0].action
    found = rescued(opened.store)
    assert found.items() <= texts.items()
    assert len(found) > len(texts) / 2
    assert usable(opened.store)
    opened.store.close()


@pytest.mark.skipif(os.name == "nt", reason="names are flushed by the file system there")
@pytest.mark.parametrize("damaged", [True, False])
def test_a_power_cut_finds_the_new_files_under_their_names(
    database: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    filled(database, clock, chats=1, messages=3)
    if damaged:
        overwrite(database, 2 * PAGE, b"\xee" * PAGE)
    else:  # of an older version: a copy is made before it is changed
        released = Path(__file__).parent / "released" / "v1.sql"
        database.unlink()
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(released.read_text("utf-8"))
    steps: list[str] = []
    replace, fsync = os.replace, os.fsync

    def renaming(source: Path, target: Path) -> None:
        steps.append("rename")
        replace(source, target)

    def syncing(handle: int) -> None:
        if os.path.samestat(os.fstat(handle), database.parent.stat()):
            steps.append("flush")
        fsync(handle)

    monkeypatch.setattr(os, "replace", renaming)
    monkeypatch.setattr(os, "fsync", syncing)
    opened = open_store(database, clock)
    assert len(opened.notices) == 1
    assert "rename" in steps
    assert steps[-1] == "flush"
    opened.store.close()
