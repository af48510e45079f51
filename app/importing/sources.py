"""Files with chats in them: JSON as it is, or inside a zip. Only reads; nothing is unpacked onto the disk."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from app.i18n import tr
from app.importing.errors import ImportFileError
from engine.progress import CancelToken, Progress, ProgressCallback
from engine.units import format_bytes

SUFFIXES = (".json", ".zip")
_MOST_BYTES = 2**30  # of one JSON file; ten times what years of chats take
_BLOCK = 2**20
_ZIP_START = b"PK\x03\x04"
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Source:
    """One JSON text. `name` is what the user knows it by; `required`: in a file of its own."""

    name: str
    text: str
    required: bool = True


def sources(path: Path, report: ProgressCallback, cancel: CancelToken) -> Iterator[Source]:
    """The JSON texts in the file at `path`. Raises `ImportFileError`, `Cancelled`."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_ZIP_START))
            if start == _ZIP_START:
                yield from _in_archive(path, report, cancel)
                return
            file.seek(0)
            size = path.stat().st_size
            yield Source(path.name, _text(path, path.name, file, size, report, cancel))
    except OSError as error:
        raise unreadable(
            path,
            tr("The system reported: {error}.", error=error.strerror or error),
            tr("Check that the file is there and may be read, then try again."),
        ) from error


def unreadable(path: Path, why: str, action: str = "") -> ImportFileError:
    """The error for a file from which nothing can be taken."""
    return ImportFileError(
        tr("“{name}” could not be imported. Your chats are unchanged.", name=path.name),
        why=why,
        action=action or tr("Choose a file that Fiddler Chat exported as JSON, or an export of ChatGPT."),
    )


def _in_archive(path: Path, report: ProgressCallback, cancel: CancelToken) -> Iterator[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = _chosen(archive.infolist())
            if not members:
                raise unreadable(path, tr("There are no chats in this archive."))
            for member in members:
                name = PurePosixPath(member.filename).name
                with archive.open(member) as file:
                    text = _text(path, name, file, member.file_size, report, cancel)
                yield Source(name, text, required=len(members) == 1)
    except _ZIP_FAULTS as error:
        damaged = tr("The archive is damaged, encrypted, or packed in an unknown way: {error}.", error=error)
        raise unreadable(path, damaged, tr("Get the file once more, then try again.")) from error


def _chosen(members: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """ChatGPT's conversations where there are some (beside much else), or every JSON file."""
    files = [member for member in members if member.filename.endswith(".json") and not member.is_dir()]
    files = [member for member in files if "__MACOSX" not in member.filename]
    theirs = [member for member in files if PurePosixPath(member.filename).name.startswith("conversations")]
    return theirs or files


def _text(
    path: Path, name: str, file: IO[bytes], size: int, report: ProgressCallback, cancel: CancelToken
) -> str:
    """What the file holds, block by block; it may be longer than `size` says."""
    large = tr("“{name}” is larger than {size}.", name=name, size=format_bytes(_MOST_BYTES))
    if size > _MOST_BYTES:
        raise unreadable(path, large)
    blocks: list[bytes] = []
    done = 0
    while block := file.read(_BLOCK):
        cancel.raise_if_cancelled()
        done += len(block)
        if done > _MOST_BYTES:
            raise unreadable(path, large)
        blocks.append(block)
        report(Progress(tr("Reading “{name}”", name=name), done, size, "B"))
    try:
        return b"".join(blocks).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unreadable(path, tr("“{name}” is not a text in UTF-8.", name=name)) from error
