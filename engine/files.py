"""Write files so that a crash or a full disk leaves the old content or the new; open what was chosen."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from engine.errors import FileError

# Directories cannot be fsynced on every file system (FUSE, some network mounts); the rename has happened then
# and only its durability is up to the file system.
_NO_DIRECTORY_FSYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}
_FULL = {errno.ENOSPC, errno.EDQUOT}
_DENIED = {errno.EACCES, errno.EPERM}


def open_to_read(path: Path) -> BinaryIO:
    """Open a file that somebody chose. Raises `OSError` for whatever is none, without ever waiting.

    To open a pipe would wait for a writer who may never come, and no `Cancelled` would reach it.
    """
    try:
        mode = path.stat().st_mode
    except ValueError as error:  # a null character, which can be pasted
        raise OSError(errno.EINVAL, "no file can have this name") from error
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no ordinary file")
    return path.open("rb")


def write_atomically(path: Path | str, data: bytes | str) -> None:
    """Replace the file at `path` by `data` (text as UTF-8, newlines as they are), as `replacing` does."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path | str, *, private: bool = False) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of the one at `path` when the block ends without an error.

    The data goes to a temporary file in the same directory, is flushed to the disk, and takes the name only
    then; the directory is flushed too. Missing directories are made. A symbolic link keeps pointing where it
    does: its target is replaced. The new file has the old one's permissions, or the usual ones; a `private`
    one is for its owner alone, whatever was there (POSIX). Raises `FileError` with cause and action for any
    `OSError`; after that or another error the old file is untouched and no temporary file remains.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _new_file(temporary, 0o600 if private else _mode_of(target)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        flush_directory(target.parent)
    except OSError as error:
        raise file_error(f"“{target.name}” could not be saved.", target, error) from error


def set_aside(path: Path, reason: str = "damaged") -> Path:
    """Rename a file that cannot be used to a free name beside it (`name.damaged-1`), and return that name.

    Nothing is overwritten, so the user can still look at it. Raises `FileError`.
    """
    number = 1
    while (aside := path.with_name(f"{path.name}.{reason}-{number}")).exists():
        number += 1
    try:
        path.rename(aside)
    except OSError as error:
        raise file_error(f"“{path.name}” could not be set aside.", path, error) from error
    return aside


def file_error(what: str, path: Path, error: OSError) -> FileError:
    """Turn what the system said about `path` into an error with cause and action for the user."""
    folder = path.parent
    if error.errno in _FULL:
        return FileError(
            what,
            why=f"The disk that holds {folder} is full.",
            action="Free some space there, then try again. What was saved before is unchanged.",
        )
    if error.errno == errno.EROFS:
        return FileError(
            what,
            why=f"{folder} is on a disk that can only be read.",
            action="Make it writable (after errors, systems protect a disk so), or choose another folder.",
        )
    if error.errno in _DENIED:
        return FileError(
            what,
            why=f"This program lacks the permission for {folder}, or for the file in it.",
            action="Check the permissions, or choose another folder.",
        )
    return FileError(
        what,
        why=f"The system reported: {error.strerror or error}.",
        action=f"Check that {folder} exists and can be written to, then try again.",
    )


def _mode_of(target: Path) -> int:
    """Permission bits for the new file: the old file's, or the usual ones less the umask."""
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0o666


def _new_file(path: Path, mode: int) -> BinaryIO:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    return open(os.open(path, flags, mode), "w+b")


def flush_directory(folder: Path) -> None:
    """Make the renames in `folder` durable, where the file system can; `OSError` if the disk fails."""
    if os.name == "nt":  # a directory cannot be opened there; NTFS journals the rename
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_FSYNC:
            raise
    finally:
        os.close(handle)
