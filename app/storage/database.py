"""One connection to the chats' database: how it is set up, and its transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from app.storage.errors import from_sqlite
from app.text import fold

# Of a damaged file: the binding cannot even read a message of SQLite that quotes damaged bytes.
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
BUSY_SECONDS = 5.0  # how long a write waits for another window's
_SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_mode = WAL",
    # An fsync for each transaction: a message that was acknowledged survives a power cut.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # on macOS a plain fsync stops at the drive's own cache
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA trusted_schema = OFF",
    # What a user deletes for good is overwritten, not only unlinked.
    "PRAGMA secure_delete = ON",
)


def connect(path: Path | None) -> sqlite3.Connection:
    """Open (or create) the database at `path`, None for one in memory. Raises `sqlite3.Error`, `OSError`.

    Transactions are explicit (`transaction`); a statement outside one commits by itself.
    """
    name = ":memory:"
    if path is not None:
        name = str(path)
        create_private(path)
    connection = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        # Damage inside a text is no reason to hide the rest of it.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.create_function("fold", 1, fold, deterministic=True)
        for setting in _SETTINGS:
            connection.execute(setting)
    except UnicodeDecodeError as error:
        connection.close()
        raise _unsayable() from error
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _unsayable() -> sqlite3.DatabaseError:
    """What is raised for a schema so damaged that SQLite's message about it is no text."""
    damage = sqlite3.DatabaseError("malformed database schema")
    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return damage


def create_private(path: Path) -> None:
    """Create an empty file that other users of the computer cannot read, unless it exists."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives the log the file's permissions


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path, what: str) -> Iterator[None]:
    """All or nothing: commits at the end, rolls back on any error.

    An error of SQLite becomes a `StorageError` that begins with `what`. IMMEDIATE takes the write lock first:
    a transaction that reads and then writes can then not be refused half-way.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite has already rolled back when the disk is full
                connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise from_sqlite(error, what, path) from error


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn an error of SQLite while reading into a `StorageError` that begins with `what`."""
    try:
        yield
    except sqlite3.Error as error:
        raise from_sqlite(error, what, path) from error
