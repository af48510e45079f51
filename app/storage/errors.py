"""What can go wrong with the chats' database, told in the user's words."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from pathlib import Path

from app.i18n import tr
from engine.errors import EngineError


class StorageError(EngineError):
    """A chat could not be read or saved. What was saved before is unchanged."""


class DamagedError(StorageError):
    """The database file is damaged or is not ours: it must be set aside before chats can be saved."""


class Notice(EngineError):  # noqa: N818 - told, not raised; shown in the same way as an error
    """Something that happened to the user's data meanwhile: shown once, as what / why / action.

    `good`: it went as it should, and is told as a remark; anything else is a warning.
    """

    def __init__(self, what: str, *, why: str = "", action: str = "", good: bool = False) -> None:
        super().__init__(what, why=why, action=action)
        self.good = good


_LEAST_FREE = 2**20  # bytes; the log's index grows by 32 KiB, which a nearly full disk may refuse, too
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN}
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def from_sqlite(error: sqlite3.Error, what: str, path: Path) -> StorageError:
    """The error to show for what SQLite reported about the database at `path`."""
    # Extended codes carry the family in their low byte; errors of the Python binding itself have no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    folder = path.parent
    if code == sqlite3.SQLITE_FULL:
        return _full(what, folder)
    if code in _DAMAGED:
        return DamagedError(
            what,
            why=tr("The file {path} is damaged.", path=path),
            action=tr("Start the program again: it sets the file aside and rescues what can be read."),
        )
    if code in _DENIED and _can_only_be_read(folder):
        return StorageError(
            what,
            why=tr("{folder} is on a disk that can only be read.", folder=folder),
            action=tr("Make it writable (after errors, systems protect a disk so), then try again."),
        )
    if code in _DENIED:
        return StorageError(
            what,
            why=tr("This program may not write to {folder}.", folder=folder),
            action=tr("Check the folder's permissions, then try again."),
        )
    if code in _IN_USE:
        return StorageError(
            what,
            why=tr("Another program has been using {path} for seconds.", path=path),
            action=tr("Close other windows of this program, then try again."),
        )
    if code == sqlite3.SQLITE_IOERR and _is_full(folder):
        return _full(what, folder)
    return StorageError(
        what,
        why=tr("The database reported: {error}.", error=error),
        action=tr("Check the disk that holds {folder}, then try again.", folder=folder),
    )


def _full(what: str, folder: Path) -> StorageError:
    return StorageError(
        what,
        why=tr("The disk that holds {folder} is full.", folder=folder),
        action=tr("Free some space there, then try again. What was saved before is unchanged."),
    )


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _LEAST_FREE
    except OSError:
        return False


def _can_only_be_read(folder: Path) -> bool:
    """Whether the file system as a whole cannot be written to; SQLite's codes do not tell."""
    if sys.platform == "win32":
        return False
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False
