"""Open the chats: check the file, migrate it, and when it is damaged set it aside and start afresh."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.i18n import tr
from app.paths import ensure_dir
from app.storage.database import UNREADABLE, connect
from app.storage.errors import DamagedError, Notice, StorageError, from_sqlite
from app.storage.replacing import finish_replacing, replace_damaged
from app.storage.rows import MessageRow
from app.storage.runs import Run
from app.storage.salvage import salvage
from app.storage.schema import check_ours, migrate
from app.storage.store import ChatStore, utc_now
from engine.errors import EngineError
from engine.file_lock import FileLock

_OPEN_SECONDS = 30.0  # how long to wait for another window that is checking or rescuing the file


@dataclass(frozen=True)
class Opened:
    """An opened store, and what the user should hear about it.

    `interrupted` are the answers that a program left unfinished when it died. `saved` is False for a store
    in memory: its chats end with the program.
    """

    store: ChatStore
    notices: tuple[Notice, ...] = ()
    interrupted: tuple[MessageRow, ...] = ()
    saved: bool = True


def open_store(path: Path, clock: Callable[[], datetime] = utc_now) -> Opened:
    """Open the chats at `path`, which is created when missing.

    A damaged file is set aside under another name, what can be read from it is rescued into a new file, and
    a notice says so. Then answers of dead programs are marked interrupted, and chats deleted long ago are
    removed. Raises `StorageError` when there can be no file (read-only folder, full disk, newer version).
    """
    what = tr("The saved chats could not be opened.")
    try:
        ensure_dir(path.parent)
        # Two windows that start at once must not both set the file aside.
        lock = FileLock(path.with_name(f"{path.name}.opening"))
        if not _held(lock):
            raise StorageError(
                what,
                why=tr("Another window has been opening them for {seconds} seconds.", seconds=_OPEN_SECONDS),
                action=tr("Close the other windows of this program, then try again."),
            )
        try:
            connection, notices = _open_or_replace(path, clock())
        finally:
            lock.release()
    except StorageError:
        raise
    except EngineError as error:
        raise StorageError(what, why=error.why, action=error.action) from error
    except OSError as error:
        raise StorageError(
            what,
            why=tr("The system reported for {folder}: {error}.", folder=path.parent, error=error.strerror),
            action=tr("Check that the folder exists and can be written to, then start again."),
        ) from error
    except sqlite3.Error as error:
        raise from_sqlite(error, what, path) from error
    return _recover(ChatStore(connection, path, Run(path.with_name(f"{path.name}.runs")), clock), notices)


def open_in_memory(copy_of: Path | None = None, clock: Callable[[], datetime] = utc_now) -> Opened:
    """A store without a file, for when none can be had: the user can chat, but it is not saved.

    It begins with a copy of the chats at `copy_of`, as far as they can be read: those of a folder that became
    read-only can then still be looked up.
    """
    if copy_of is not None:
        connection = connect(None)
        try:
            _copy_into(connection, copy_of, clock())
            opened = _in_memory(connection, clock)
            opened.store.conversations(archived=None)  # damage may lie where no check looks
            return opened
        except (*UNREADABLE, OSError, StorageError):
            connection.close()
    return _in_memory(connect(None), clock)


def _in_memory(connection: sqlite3.Connection, clock: Callable[[], datetime]) -> Opened:
    memory = Path(":memory:")
    migrate(connection, memory, clock())
    store = ChatStore(connection, memory, Run(None), clock)
    store.recover_interrupted()
    return Opened(store, saved=False)


def _copy_into(connection: sqlite3.Connection, path: Path, now: datetime) -> None:
    """Read the whole database at `path` without writing anything beside it, as SQLite itself would.

    Of a damaged one, what can be rescued.
    """
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            part = path.with_name(path.name + suffix)
            if not suffix or part.exists():
                shutil.copyfile(part, Path(folder) / f"copy{suffix}")
        copy = Path(folder) / "copy"
        try:
            with closing(sqlite3.connect(copy)) as source:
                check_ours(source, path)
                _check_sound(source, path)
                source.backup(connection)
        except (DamagedError, *UNREADABLE):
            migrate(connection, Path(":memory:"), now)
            salvage(copy, connection)


def _held(lock: FileLock) -> bool:
    try:
        return lock.wait(_OPEN_SECONDS)
    except OSError:
        return True  # a file system without locks, or one that may not be written, which SQLite explains


def _recover(store: ChatStore, notices: list[Notice]) -> Opened:
    """What each start does. A full disk does not stop it: what was saved can then still be read."""
    interrupted: list[MessageRow] = []
    try:
        interrupted = store.recover_interrupted()
        store.purge()
    except StorageError as error:
        notices.append(Notice(error.what, why=error.why, action=error.action))
    return Opened(store, tuple(notices), tuple(interrupted))


def _open_or_replace(path: Path, now: datetime) -> tuple[sqlite3.Connection, list[Notice]]:
    finished = finish_replacing(path, now)
    told = [] if finished is None else [finished]
    try:
        connection, notices = _open(path, now)
    except DamagedError as error:
        told.append(replace_damaged(path, now, error))
        connection, notices = _open(path, now)
    return connection, told + notices


def _open(path: Path, now: datetime) -> tuple[sqlite3.Connection, list[Notice]]:
    notices: list[Notice] = []
    try:
        connection = connect(path)
        try:
            check_ours(connection, path)
            _check_sound(connection, path)
            backup = migrate(connection, path, now)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise from_sqlite(error, tr("The saved chats could not be opened."), path) from error
    if backup is not None:
        notices.append(
            Notice(
                tr("Your chats were brought to this version's format."),
                why=tr("The file as it was before is kept as {name}.", name=backup.name),
                good=True,
            )
        )
    return connection, notices


def _check_sound(connection: sqlite3.Connection, path: Path) -> None:
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise DamagedError(
            tr("The saved chats are damaged."),
            why=tr("The check of {path} found: {found}.", path=path, found=verdict),
        )
