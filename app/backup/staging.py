"""Check a backup and unpack it beside the present data, which is not touched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from app.archives import ZIP_FAULTS
from app.backup.contents import (
    DATABASE,
    FOLDER,
    LARGEST_MANIFEST,
    MANIFEST,
    ORDER,
    PRESETS,
    SETTINGS,
    Manifest,
    damaged,
    foreign,
)
from app.backup.errors import BackupError
from app.i18n import tr
from app.storage.database import connect
from app.storage.errors import StorageError
from app.storage.schema import check_ours, migrate
from engine.files import file_error, flush_directory, open_to_read
from engine.progress import CancelToken, Progress, ProgressCallback
from engine.units import format_bytes

_BLOCK = 2**20
_SPARE = 64 * 2**20  # bytes to leave free on the disk


def stage(backup: Path, data: Path, report: ProgressCallback, cancel: CancelToken) -> Manifest:
    """Unpack `backup` into `data`/restore, bring its chats to this version's format, and check everything.

    What an earlier try left there is replaced. Never call it in the window's thread. Raises `BackupError` for
    a file that is none, is damaged or unreadable, or is from a newer version; `FileError`, `Cancelled`. Then
    nothing stays.
    """
    folder = data / FOLDER
    try:
        (data / ORDER).unlink(missing_ok=True)  # an earlier one, which does not mean what comes now
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        try:
            manifest = _unpack(backup, folder, report, cancel)
            report(Progress(tr("Checking the chats")))
            _check(folder, manifest)
            for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
                flush_directory(place)
            cancel.raise_if_cancelled()
        except BaseException:
            discard(data)
            raise
    except OSError as error:
        raise file_error(tr("The backup could not be unpacked."), folder, error) from error
    return manifest


def discard(data: Path) -> None:
    """Forget what was unpacked: the user has thought better of it."""
    shutil.rmtree(data / FOLDER, ignore_errors=True)


def _unpack(backup: Path, folder: Path, report: ProgressCallback, cancel: CancelToken) -> Manifest:
    try:
        with _reading(backup):
            chosen = open_to_read(backup)
        with chosen:
            with _reading(backup):
                archive = zipfile.ZipFile(chosen)
                manifest = _manifest(archive)
            _check_room(folder, sum(entry.bytes for entry in manifest.files.values()))
            _unpack_files(manifest, partial(_blocks, archive, backup), folder, report, cancel)
            return manifest
    except zipfile.BadZipFile as error:
        raise (damaged(str(error)) if _begins_like_a_zip(backup) else foreign()) from error
    except (*ZIP_FAULTS, KeyError, ValueError) as error:
        raise damaged(tr("A part of it is missing or unreadable.")) from error


def _unpack_files(
    manifest: Manifest,
    read: Callable[[str], Iterator[bytes]],
    folder: Path,
    report: ProgressCallback,
    cancel: CancelToken,
) -> None:
    total, done = sum(entry.bytes for entry in manifest.files.values()), 0
    for name, entry in manifest.files.items():
        digest, left = hashlib.sha256(), entry.bytes
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb", opener=_private) as file:
            for block in read(name):
                cancel.raise_if_cancelled()
                left -= len(block)
                if left < 0:  # never more than it says of itself
                    raise damaged(tr("{name} is longer than it should be.", name=name))
                file.write(block)
                digest.update(block)
                done += len(block)
                report(Progress(tr("Unpacking the backup"), done, total, "B"))
            file.flush()
            os.fsync(file.fileno())  # it is only renamed later
        if left or digest.hexdigest() != entry.sha256:
            raise damaged(tr("{name} is not what was written into it.", name=name))


def _blocks(archive: zipfile.ZipFile, backup: Path, name: str) -> Iterator[bytes]:
    """What a file in the backup holds."""
    with _reading(backup), archive.open(name) as packed:
        while block := packed.read(_BLOCK):
            yield block


@contextmanager
def _reading(backup: Path) -> Iterator[None]:
    """Say of what goes wrong while the backup is read that it is about that file, not the data folder."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # not the system's, but of what unpacks
            raise damaged(tr("A part of it is missing or unreadable.")) from error
        raise BackupError(
            tr("“{name}” could not be read.", name=backup.name),
            why=tr("The system reported: {error}.", error=error.strerror or error),
            action=tr("Check that the file is there and may be read, then try again."),
        ) from error


def _private(path: str, flags: int) -> int:
    """Other users of the computer cannot read it."""
    return os.open(path, flags, 0o600)


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        info = archive.getinfo(MANIFEST)
    except KeyError:
        raise foreign() from None
    if info.file_size > LARGEST_MANIFEST:
        raise foreign()
    with archive.open(info) as file:
        return Manifest.from_json(file.read(LARGEST_MANIFEST))


def _begins_like_a_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _check_room(folder: Path, total: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < total + _SPARE:
        raise BackupError(
            tr("There is not enough room to restore this backup."),
            why=tr(
                "It needs {needed}, and {free} is free.",
                needed=format_bytes(total + _SPARE),
                free=format_bytes(free),
            ),
            action=tr("Free some space on the disk that holds {folder}.", folder=folder.parent),
        )


def _check(folder: Path, manifest: Manifest) -> None:
    if DATABASE in manifest.files:
        _check_database(folder / DATABASE)
    readers: dict[str, Callable[[str], object]] = {SETTINGS: tomllib.loads, PRESETS: json.loads}
    for name, read in readers.items():
        if name in manifest.files:
            try:
                read((folder / name).read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                raise damaged(tr("{name} cannot be read.", name=name)) from error


def _check_database(path: Path) -> None:
    """The chats must be ours and sound; those of an older version are brought to this one's format."""
    try:
        with closing(connect(path)) as db:
            check_ours(db, path)
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise damaged(tr("The chats in it are damaged."))
            copy = migrate(db, path, datetime.now(UTC))
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("PRAGMA journal_mode = DELETE")  # one file is moved, without a log
    except StorageError as error:
        what = tr("This backup cannot be restored.")
        raise BackupError(what, why=error.why or error.what, action=error.action) from error
    except sqlite3.Error as error:
        raise damaged(tr("The chats in it are damaged.")) from error
    if copy is not None:
        with suppress(FileNotFoundError):
            copy.unlink()  # the backup itself still has them in the old format
