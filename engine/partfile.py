"""The part of a file that has been downloaded so far, hashed as it grows. Torch-free."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Literal, Self

from engine.errors import DownloadError
from engine.file_lock import FileLock
from engine.files import file_error, flush_directory, write_atomically
from engine.progress import CancelToken

if TYPE_CHECKING:
    from hashlib import _Hash

_BLOCK = 1 << 20
_PATIENCE = 0.5  # seconds: another program that is just ending lets go


def open_part(path: Path) -> BinaryIO:
    """Open a part for reading and appending. Unbuffered: a killed program loses nothing that came."""
    return path.open("ab+", buffering=0)


@dataclass(frozen=True)
class Digest:
    """What a file's content must hash to: its SHA-256, or the name that git gives to it (SHA-1)."""

    algorithm: Literal["sha256", "git-sha1"]
    hexdigest: str

    def start(self, size: int) -> _Hash:
        """A hash object for a file of `size` bytes."""
        if self.algorithm == "sha256":
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def file_matches(path: Path, size: int, digest: Digest, cancel: CancelToken) -> bool:
    """Whether the file has that size and content. Raises `FileError` if it is unreadable, and `Cancelled`."""
    hasher = digest.start(size)
    try:
        if path.stat().st_size != size:
            return False
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                cancel.raise_if_cancelled()
                hasher.update(block)
    except OSError as error:
        raise file_error(f"“{path.name}” could not be read.", path, error) from error
    return hasher.hexdigest() == digest.hexdigest


class PartFile:
    """`<name>.part` beside the target: `length` of its `size` bytes are there, and hashed.

    Use it in a `with` block; what was written stays for the next attempt. A lock keeps others away meanwhile:
    two that append to one part would spoil it. All methods raise `FileError` where the file system refuses (a
    full disk, missing rights).
    """

    def __init__(self, target: Path, size: int, digest: Digest, cancel: CancelToken) -> None:
        """Begin the part, or open and hash what an earlier attempt left.

        Raises `DownloadError` while another `PartFile` for this target, in this program or another, has it.
        """
        self.size = size
        self.length = 0
        self._target = target
        self._path = target.with_name(f"{target.name}.part")
        self._etag_path = target.with_name(f"{target.name}.part.etag")
        self._digest = digest
        self._hash = digest.start(size)
        # Beside the part and not in it: the lock must outlast the part's change of name.
        self._lock = FileLock(target.with_name(f"{target.name}.part.lock"))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                if not _held(self._lock):
                    raise _in_use(target)
                undo.callback(self._lock.release)
                self._file = open_part(self._path)
                undo.callback(self._file.close)
                self._hash_existing(cancel)
                undo.pop_all()
        except OSError as error:
            raise self._refused(error) from error
        self.resumed = self.length > 0  # whether some of the bytes are an earlier attempt's

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.release()

    @property
    def complete(self) -> bool:
        """Whether all bytes are there; whether they are the right ones, `matches` says."""
        return self.length == self.size

    @property
    def matches(self) -> bool:
        """Whether the content is the expected one."""
        return self._hash.hexdigest() == self._digest.hexdigest

    @property
    def etag(self) -> str:
        """The server's name for the version that the bytes belong to; empty if it gave none.

        Of a damaged file too: the hash finds out if the bytes are another version's.
        """
        try:
            etag = self._etag_path.read_text("utf-8")
            return etag if etag.isprintable() else ""
        except (FileNotFoundError, UnicodeDecodeError):
            return ""
        except OSError as error:
            raise self._refused(error) from error

    def remember_etag(self, etag: str) -> None:
        """Keep the server's name for this version for the next attempt."""
        write_atomically(self._etag_path, etag)

    def append(self, block: bytes) -> None:
        """Add bytes at the end."""
        rest = memoryview(block)
        try:
            while rest:  # an unbuffered file takes what fits when the disk is nearly full
                written = self._file.write(rest)
                self._hash.update(rest[:written])
                self.length += written
                rest = rest[written:]
        except OSError as error:
            raise self._refused(error) from error

    def restart(self) -> None:
        """Drop all bytes."""
        try:
            self._file.truncate(0)
            self._etag_path.unlink(missing_ok=True)
        except OSError as error:
            raise self._refused(error) from error
        self._hash = self._digest.start(self.size)
        self.length = 0
        self.resumed = False

    def publish(self) -> None:
        """Flush the file to the disk and give it its name."""
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._path, self._target)
            self._etag_path.unlink(missing_ok=True)
            flush_directory(self._target.parent)
        except OSError as error:
            raise self._refused(error) from error

    def _hash_existing(self, cancel: CancelToken) -> None:
        if self._path.stat().st_size > self.size:
            self.restart()
            return
        self._file.seek(0)
        while block := self._file.read(_BLOCK):
            cancel.raise_if_cancelled()
            self._hash.update(block)
            self.length += len(block)

    def _refused(self, error: OSError) -> Exception:
        return file_error(f"“{self._target.name}” could not be written.", self._target, error)


def _held(lock: FileLock) -> bool:
    try:
        return lock.wait(_PATIENCE)
    except OSError:
        return True  # a file system without locks, or one that may not be written, which opening explains


def _in_use(target: Path) -> DownloadError:
    return DownloadError(
        f"“{target.name}” is already being downloaded.",
        why=f"Another window, or another program, is writing it into {target.parent}.",
        action="Wait until that has ended, or stop it there, then start again: it goes on from where it is.",
    )
