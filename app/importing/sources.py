"""Files with chats in them: JSON as it is, or inside a zip. Only reads; nothing is unpacked onto the disk."""

from __future__ import annotations

import zipfile
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from app.archives import ZIP_FAULTS
from app.i18n import tr
from app.importing.errors import ImportFileError
from engine.files import open_to_read
from engine.progress import CancelToken, Progress, ProgressCallback
from engine.units import format_bytes

# Of one JSON text: many times what years of chats take, and what a small zip can blow up to.
_MOST_BYTES = 2**32
_BLOCK = 2**20
_ZIP_START = b"PK\x03\x04"


@dataclass(frozen=True)
class Source:
    """A JSON text in blocks, to be read once, before the next source is asked for.

    `name` is what the user knows it by; `required`: there is no other beside it.
    """

    name: str
    blocks: Iterator[str]
    required: bool = True


def sources(path: Path, report: ProgressCallback, cancel: CancelToken) -> Iterator[Source]:
    """The JSON texts in the file at `path`. These and their blocks raise `ImportFileError`, `Cancelled`."""
    with _explained(path), open_to_read(path) as file:
        start = file.read(len(_ZIP_START))
        if start == _ZIP_START:
            yield from _in_archive(path, file, report, cancel)
            return
        file.seek(0)
        size = path.stat().st_size
        yield Source(path.name, _blocks(path, path.name, file, size, report, cancel))


def unreadable(path: Path, why: str, action: str = "") -> ImportFileError:
    """The error for a file from which nothing can be taken."""
    return ImportFileError(
        tr("“{name}” could not be imported. Your chats are unchanged.", name=path.name),
        why=why,
        action=action or tr("Choose a file that Fiddler Chat exported as JSON, or an export of ChatGPT."),
    )


def _in_archive(
    path: Path, whole: IO[bytes], report: ProgressCallback, cancel: CancelToken
) -> Iterator[Source]:
    with zipfile.ZipFile(whole) as archive:
        members = _chosen(archive.infolist())
        if not members:
            raise unreadable(path, tr("There are no chats in this archive."))
        for member in members:
            name = PurePosixPath(member.filename).name
            with archive.open(member) as file:
                blocks = _blocks(path, name, file, member.file_size, report, cancel)
                yield Source(name, blocks, required=len(members) == 1)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say of what the system or the archive reports what it means for the user."""
    try:
        yield
    except OSError as error:
        raise unreadable(
            path,
            tr("The system reported: {error}.", error=error.strerror or error),
            tr("Check that the file is there and may be read, then try again."),
        ) from error
    except ZIP_FAULTS as error:
        damaged = tr("The archive is damaged, encrypted, or packed in an unknown way: {error}.", error=error)
        raise unreadable(path, damaged, tr("Get the file once more, then try again.")) from error


def _chosen(members: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """ChatGPT's conversations where there are some (beside much else), or every JSON file."""
    files = [member for member in members if member.filename.endswith(".json") and not member.is_dir()]
    files = [member for member in files if "__MACOSX" not in member.filename]
    theirs = [member for member in files if PurePosixPath(member.filename).name.startswith("conversations")]
    return theirs or files


def _blocks(
    path: Path, name: str, file: IO[bytes], size: int, report: ProgressCallback, cancel: CancelToken
) -> Iterator[str]:
    """What the file holds; it may be longer than `size` says."""
    decoder = getincrementaldecoder("utf-8-sig")()
    done = 0
    ended = False
    while not ended:
        cancel.raise_if_cancelled()
        with _explained(path):
            block = file.read(_BLOCK)
        ended = not block
        done += len(block)
        if max(done, size) > _MOST_BYTES:
            large = tr("“{name}” is larger than {size}.", name=name, size=format_bytes(_MOST_BYTES))
            raise unreadable(path, large)
        try:
            text = decoder.decode(block, final=ended)
        except UnicodeDecodeError as error:
            whole = name == path.name
            why = (
                tr("It is not a text in UTF-8.")
                if whole
                else tr("“{name}” is not a text in UTF-8.", name=name)
            )
            raise unreadable(path, why) from error
        report(Progress(tr("Reading “{name}”", name=name), done, size, "B"))
        if text:
            yield text
