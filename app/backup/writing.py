"""Make a backup while the program runs: a consistent copy of the chats, and the other files."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from app.backup.contents import DATABASE, MANIFEST, PRESETS, SETTINGS, UNFINISHED, Entry, Manifest, is_allowed
from app.backup.errors import BackupError
from app.i18n import tr
from app.paths import data_dir, database_path, ensure_dir, presets_path, profiles_dir, settings_path
from app.storage.database import connect
from app.storage.errors import from_sqlite
from engine.errors import Cancelled
from engine.files import file_error, replacing
from engine.progress import CancelToken, Progress, ProgressCallback
from engine.version import version

_BLOCK = 2**20
_STEPS = 5000  # of SQLite's machine between two looks at the progress


def back_up(target: Path, report: ProgressCallback, cancel: CancelToken) -> Manifest:
    """Write everything into the zip at `target`, which is complete or absent.

    Never call it in the window's thread. Chats that are written meanwhile are not held up; those that were
    saved before are in it. Raises `BackupError`, `StorageError`, `FileError`, `Cancelled`.
    """
    try:
        own = ensure_dir(data_dir())
        writable = os.access(own, os.W_OK)
        with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=own if writable else target.parent) as folder:
            copy = Path(folder) / DATABASE
            source = database_path() if writable else _beside(database_path(), Path(folder))
            chats = copy_database(source, copy, report, cancel)
            sources = _sources(copy if chats is not None else None)
            if not sources:
                raise BackupError(
                    tr("There is nothing to back up yet."),
                    why=tr("No chats, settings or presets have been saved on this computer."),
                )
            # It holds all chats, and is as private as they are. Exports are not: they are to be passed on.
            with replacing(target, private=True) as file:
                return _pack(file, sources, chats or 0, report, cancel)
    except OSError as error:
        raise file_error(tr("The backup could not be made."), target, error) from error


def copy_database(path: Path, copy: Path, report: ProgressCallback, cancel: CancelToken) -> int | None:
    """Write the chats as they are now into a file of their own; how many there are, None for no file."""
    if not path.exists():
        return None
    try:
        with closing(connect(path)) as db:
            pages, size = (db.execute(f"PRAGMA page_{what}").fetchone()[0] for what in ("count", "size"))
            total = pages * size

            def look() -> bool:
                done = copy.stat().st_size if copy.exists() else 0
                report(Progress(tr("Copying the chats"), min(done, total), total, "B"))
                return cancel.cancelled  # True interrupts

            look()
            db.set_progress_handler(look, _STEPS)
            try:
                # One statement sees one state of the file, and with a write-ahead log nobody waits for it.
                db.execute("VACUUM INTO ?", (str(copy),))
            finally:
                db.set_progress_handler(None, 0)
            counted: int = db.execute("SELECT count(*) FROM conversation WHERE deleted IS NULL").fetchone()[0]
            return counted
    except sqlite3.Error as error:
        if cancel.cancelled:
            raise Cancelled from error
        raise from_sqlite(error, tr("The backup could not be made."), path) from error


def _beside(database: Path, folder: Path) -> Path:
    """The database and its log copied to where SQLite may write: it cannot read a log where it may not."""
    target = folder / f"read-only-{database.name}"
    for suffix in ("", "-wal"):
        part = database.with_name(database.name + suffix)
        if part.exists():
            shutil.copyfile(part, target.with_name(target.name + suffix))
    return target


def _sources(database: Path | None) -> dict[str, Path]:
    """The files that go into the backup, by their names there."""
    found = {} if database is None else {DATABASE: database}
    for name, path in ((SETTINGS, settings_path()), (PRESETS, presets_path())):
        if path.is_file():
            found[name] = path
    folder = profiles_dir()
    for path in sorted(folder.rglob("*.json")):
        name = f"profiles/{path.relative_to(folder).as_posix()}"
        if is_allowed(name) and path.is_file():
            found[name] = path
    return found


def _pack(
    file: BinaryIO, sources: dict[str, Path], chats: int, report: ProgressCallback, cancel: CancelToken
) -> Manifest:
    total, done = sum(path.stat().st_size for path in sources.values()), 0
    entries: dict[str, Entry] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sources.items():
            digest, size = hashlib.sha256(), 0
            with archive.open(name, "w", force_zip64=True) as packed:
                for block in _blocks(path):
                    cancel.raise_if_cancelled()
                    packed.write(block)
                    digest.update(block)
                    size += len(block)
                    done += len(block)
                    report(Progress(tr("Writing the backup"), min(done, total), total, "B"))
            entries[name] = Entry(size, digest.hexdigest())
        manifest = Manifest(datetime.now(UTC).isoformat(timespec="seconds"), version(), chats, entries)
        archive.writestr(MANIFEST, manifest.to_json())
    return manifest


def _blocks(path: Path) -> Iterator[bytes]:
    """What is in a file; an error names it, not the backup."""
    try:
        with path.open("rb") as source:
            while block := source.read(_BLOCK):
                yield block
    except OSError as error:
        raise file_error(tr("The backup could not be made."), path, error) from error
