import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from app.attachments.form import Attachment, compose
from app.storage import MessageState, StorageError, open_store
from app.storage.database import connect
from app.storage.schema import MIGRATIONS, migrate, version_of

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NEWEST = len(MIGRATIONS)
RELEASED = sorted((Path(__file__).parent / "released").glob("v*.sql"))

PLACES = {"rome": 2, "753 bc": 4, "paris?": 5, "quoted": 1, "lines": 1}

# Schemas that never were: what the next versions might do.
NEXT = (
    "CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    "ALTER TABLE conversation ADD COLUMN folder_id INTEGER REFERENCES folder (id)",
    "INSERT INTO folder VALUES (1, 'all')",
    "UPDATE conversation SET folder_id = 1",
)
BROKEN = ("CREATE TABLE half (done)", "DELETE FROM message", "UPDATE no_such_table SET x = 1")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of the newest version with a chat in it."""
    path = tmp_path / "chats.sqlite3"
    store = open_store(path).store
    chat = store.create_conversation("old")
    store.add_message(chat.id, "user", "kept")
    store.close()
    return path


@pytest.fixture
def connection(old: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(old)) as opened:
        yield opened


def tables(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {row[0]: " ".join(row[1].split()) for row in rows}


def test_an_older_file_is_backed_up_and_migrated(connection: sqlite3.Connection, old: Path) -> None:
    before = tables(connection)
    backup = migrate(connection, old, NOW, (*MIGRATIONS, NEXT))
    assert backup == old.with_name(f"chats.sqlite3.v{NEWEST}-20260102-030405.backup")
    assert version_of(connection) == NEWEST + 1
    row = connection.execute("SELECT title, folder_id FROM conversation").fetchone()
    assert tuple(row) == ("old", 1)
    with closing(sqlite3.connect(backup)) as copy:
        assert tables(copy) == before
        assert copy.execute("PRAGMA user_version").fetchone()[0] == NEWEST
        assert copy.execute("SELECT content FROM message").fetchone() == ("kept",)
    assert not list(old.parent.glob("*.tmp"))


def test_versions_are_passed_one_by_one(connection: sqlite3.Connection, old: Path) -> None:
    later = ("ALTER TABLE folder ADD COLUMN colour TEXT",)
    migrate(connection, old, NOW, (*MIGRATIONS, NEXT, later))
    assert version_of(connection) == NEWEST + 2
    assert "colour" in tables(connection)["folder"]


def test_a_failed_migration_changes_nothing(connection: sqlite3.Connection, old: Path) -> None:
    before = tables(connection)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, old, NOW, (*MIGRATIONS, NEXT, BROKEN))
    assert tables(connection) == before
    assert version_of(connection) == NEWEST
    assert connection.execute("SELECT count(*) FROM message").fetchone()[0] == 1
    assert not connection.in_transaction


def test_what_is_up_to_date_is_not_touched(connection: sqlite3.Connection, old: Path) -> None:
    assert migrate(connection, old, NOW) is None
    assert not list(old.parent.glob("*.backup"))


def test_a_newer_file_is_refused(connection: sqlite3.Connection, old: Path) -> None:
    migrate(connection, old, NOW, (*MIGRATIONS, NEXT))
    with pytest.raises(StorageError, match="newer version"):
        migrate(connection, old, NOW)


def test_a_failed_backup_leaves_the_file_as_it_is(
    connection: sqlite3.Connection, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.storage.schema.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        migrate(connection, old, NOW, (*MIGRATIONS, NEXT))
    assert version_of(connection) == NEWEST
    assert [path.name for path in old.parent.glob("*.backup*")] == []


def test_the_window_tells_of_the_backup(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.storage.opening.migrate", partial(migrate, migrations=(*MIGRATIONS, NEXT)))
    opened = open_store(old)
    (notice,) = opened.notices
    assert f".v{NEWEST}-" in notice.why
    opened.store.close()


def test_every_version_has_a_released_file() -> None:
    assert [path.stem for path in RELEASED] == [f"v{number + 1}" for number in range(len(MIGRATIONS))]


@pytest.mark.parametrize("script", RELEASED, ids=lambda path: path.stem)
def test_every_released_file_becomes_the_newest(tmp_path: Path, script: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script.read_text("utf-8"))
    opened = open_store(path)
    assert (len(opened.notices) == 1) is (script is not RELEASED[-1])
    rome, draftless = opened.store.conversations()
    assert (rome.conversation.title, draftless.conversation.title) == ("Rome", "Gelöscht? No: 北京")
    rows = opened.store.messages(rome.conversation.id, all_versions=True)
    assert [(row.content, row.state, row.active) for row in rows] == [
        ("When was Rome founded?", MessageState.COMPLETE, True),
        ("In 753", MessageState.STOPPED, False),
        ("In 753 BC.", MessageState.COMPLETE, True),
        ("And Paris?", MessageState.COMPLETE, True),
        ("In the third cen", MessageState.INTERRUPTED, True),
    ]
    fourth = script.stem >= "v4"
    assert [row.seen_from for row in rows] == [None, None, None, None, 5 if fourth else None]
    assert (rome.conversation.parameters or {}).get("preset") == ("precise" if fourth else None)
    assert opened.store.draft(rome.conversation.id) == "Thank"
    files = compose([Attachment("note.txt", "In 753 BC.")], "")
    assert opened.store.draft(draftless.conversation.id) == (files if script.stem >= "v6" else "")
    waiting = [opened.store.next_message(chat) for chat in (rome.conversation.id, None)]
    assert waiting == (["And Lyon?", "new, too"] if int(script.stem[1:]) >= 3 else ["", ""])
    edits = opened.store.edits(rome.conversation.id)
    assert edits == ({rows[3].id: "And Paris, then?"} if int(script.stem[1:]) >= 5 else {})
    assert opened.store.deleted()[1] == []
    for sought in ("rome", "753 bc", "paris?", "quoted", "lines"):
        assert [line.place for line in opened.store.conversations(sought)] == [PLACES[sought]], sought
    with closing(connect(tmp_path / "fresh.sqlite3")) as fresh:
        migrate(fresh, tmp_path / "fresh.sqlite3", NOW)
        assert tables(opened.store._db) == tables(fresh)
    opened.store.close()
