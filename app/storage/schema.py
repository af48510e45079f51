"""The database's tables, and how a file of an older version becomes one of this version.

`MIGRATIONS[v]` takes a file from version v to v + 1; version 0 is an empty file. A released entry is never
changed: a new version is a new entry, tried in the tests on a file of every version before it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from app.i18n import tr
from app.storage.database import create_private
from app.storage.errors import DamagedError, StorageError
from engine.files import flush_directory

APPLICATION_ID = 0x46694368  # "FiCh" in the file's header: says whose database this is

_TIME = "typeof({0}) = 'integer' AND {0} BETWEEN 0 AND 253402300799999"  # until the year 9999

# Times are milliseconds since 1970 (UTC). `activity` orders the list by the last change without trusting the
# clock. AUTOINCREMENT: an id is never used twice, so an undo cannot hit a newer chat. `parent` and `active`
# keep every alternative answer; `run` names the running program that is writing a streaming row. The CHECKs
# let the test at each start find values that only a damaged page can hold.
_VERSION_1 = (
    f"""
    CREATE TABLE conversation (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL CHECK (typeof(title) = 'text'),
        model TEXT NOT NULL DEFAULT '' CHECK (typeof(model) = 'text'),
        system_prompt TEXT NOT NULL DEFAULT '' CHECK (typeof(system_prompt) = 'text'),
        created INTEGER NOT NULL CHECK ({_TIME.format("created")}),
        updated INTEGER NOT NULL CHECK ({_TIME.format("updated")}),
        activity INTEGER NOT NULL CHECK (typeof(activity) = 'integer'),
        deleted INTEGER CHECK (deleted IS NULL OR {_TIME.format("deleted")})
    )
    """,
    "CREATE INDEX conversation_activity ON conversation (activity)",
    f"""
    CREATE TABLE message (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        parent INTEGER REFERENCES message (id) ON DELETE SET NULL,
        active INTEGER NOT NULL DEFAULT 1 CHECK (active IN (0, 1)),
        role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
        content TEXT NOT NULL CHECK (typeof(content) = 'text'),
        state TEXT NOT NULL CHECK (state IN ('complete', 'streaming', 'interrupted', 'stopped', 'error')),
        created INTEGER NOT NULL CHECK ({_TIME.format("created")}),
        finished INTEGER CHECK (finished IS NULL OR {_TIME.format("finished")}),
        model TEXT NOT NULL DEFAULT '' CHECK (typeof(model) = 'text'),
        reason TEXT NOT NULL DEFAULT '' CHECK (typeof(reason) = 'text'),
        note TEXT NOT NULL DEFAULT '' CHECK (typeof(note) = 'text'),
        params TEXT,
        stats TEXT,
        run TEXT
    )
    """,
    "CREATE INDEX message_conversation ON message (conversation_id, active, id)",
    "CREATE INDEX message_parent ON message (parent)",
    "CREATE INDEX message_streaming ON message (run) WHERE state = 'streaming'",
    """
    CREATE TABLE draft (
        conversation_id INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    )
    """,
)

# `body` is the folded text: the tokenizer's own folding knows neither ß nor wide letters. The index is filled
# by the program (`index`), for a trigger must not write to a virtual table of an untrusted schema.
INDEX = (
    "CREATE VIRTUAL TABLE message_index USING fts5(body, tokenize = 'trigram case_sensitive 1')",
    "CREATE VIRTUAL TABLE message_terms USING fts5vocab('message_index', 'instance')",
)
_NOTE_CHANGE = "BEGIN INSERT OR IGNORE INTO unindexed (id) VALUES ({0}.id); END"

_VERSION_2 = (
    "ALTER TABLE conversation ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1))",
    "ALTER TABLE conversation ADD COLUMN archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1))",
    *INDEX,
    "CREATE TABLE unindexed (id INTEGER PRIMARY KEY)",
    f"CREATE TRIGGER message_added AFTER INSERT ON message WHEN new.state <> 'streaming'"
    f" {_NOTE_CHANGE.format('new')}",
    f"CREATE TRIGGER message_changed AFTER UPDATE OF content, state ON message WHEN new.state <> 'streaming'"
    f" {_NOTE_CHANGE.format('new')}",
    f"CREATE TRIGGER message_removed AFTER DELETE ON message {_NOTE_CHANGE.format('old')}",
    "INSERT INTO unindexed SELECT id FROM message WHERE state <> 'streaming'",
)

# The message that is sent when the answer under way has ended; without a chat: the first of a new one.
_VERSION_3 = (
    """
    CREATE TABLE next_message (
        conversation_id INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    )
    """,
)

# `parameters` is how the chat is answered, NULL where it follows the default preset. `seen_from` is the first
# message that an answer was written from, NULL where it is the chat's first; it may point at a deleted one:
# then it stands for the next.
_VERSION_4 = (
    "ALTER TABLE conversation ADD COLUMN parameters TEXT",
    "ALTER TABLE message ADD COLUMN seen_from INTEGER"
    " CHECK (seen_from IS NULL OR typeof(seen_from) = 'integer')",
)

# `edit` is what a message's text is being changed to. It is written whole, attached files too, each second
# while somebody types: 1 MB takes 15 ms in the storage's thread and 2 MB of the log (measured on two cores),
# and edits of such messages are rare. `deleted_turn` keeps a question with its answers, as JSON, until they
# are gone for good (`trash`).
_VERSION_5 = (
    """
    CREATE TABLE edit (
        message_id INTEGER PRIMARY KEY REFERENCES message (id) ON DELETE CASCADE,
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    )
    """,
    f"""
    CREATE TABLE deleted_turn (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        deleted INTEGER NOT NULL CHECK ({_TIME.format("deleted")}),
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    )
    """,
    "CREATE INDEX deleted_turn_conversation ON deleted_turn (conversation_id)",
)

# The files of a draft, apart from its words: these are written again each second, files may be large. (In
# drafts of older versions both stand together in `draft`.)
_VERSION_6 = (
    """
    CREATE TABLE draft_files (
        conversation_id INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    )
    """,
)

MIGRATIONS: tuple[Sequence[str], ...] = (
    _VERSION_1,
    _VERSION_2,
    _VERSION_3,
    _VERSION_4,
    _VERSION_5,
    _VERSION_6,
)


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version that the file says it has."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `DamagedError` if the file is another program's database."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    if tables and mark != APPLICATION_ID:
        raise DamagedError(
            tr("The saved chats could not be opened."),
            why=tr("The file {path} is not a database of this program.", path=path),
        )


def _has_file(connection: sqlite3.Connection) -> bool:
    _, _, file = connection.execute("PRAGMA database_list").fetchone()
    return bool(file)


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    now: datetime,
    migrations: Sequence[Sequence[str]] = MIGRATIONS,
) -> Path | None:
    """Bring the file to the newest version, in one transaction; return the backup made before, if any.

    A file that holds data is copied first, to `<name>.v<version>-<time>.backup`. A failed migration leaves
    the file as it was. Raises `StorageError` for a file of a newer version, `sqlite3.Error` otherwise.
    """
    version, newest = version_of(connection), len(migrations)
    if version > newest:
        raise StorageError(
            tr("The saved chats could not be opened."),
            why=tr("They were saved by a newer version of this program (format {version}).", version=version),
            action=tr("Install the newest version. The chats are unchanged in {path}.", path=path),
        )
    if version == newest:
        return None
    # A copy in memory has no file: its original stays as it is.
    backup = back_up(connection, path, now) if version > 0 and _has_file(connection) else None
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another window may have migrated between the look above and the lock.
        for statements in migrations[version_of(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return backup


def back_up(connection: sqlite3.Connection, path: Path, now: datetime) -> Path:
    """Copy the whole database, its log included, to a file beside it that is complete or absent."""
    target = path.with_name(f"{path.name}.v{version_of(connection)}-{now:%Y%m%d-%H%M%S}.backup")
    temporary = target.with_name(f"{target.name}.tmp")
    try:
        create_private(temporary)
        with closing(sqlite3.connect(temporary)) as copy:
            connection.backup(copy)
        os.replace(temporary, target)
        flush_directory(target.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return target
