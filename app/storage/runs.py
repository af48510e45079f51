"""Which running programs share a database: each holds a lock on a file of its own.

The system drops a lock when its process ends, however it ends, so a lock says more than a process number:
numbers are used again, and start times move with the clock.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:  # somebody holds it
            return False
        return True
else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody holds it
            return False
        return True


class FileLock:
    """An exclusive lock on the file at `path`, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Take the lock if nobody holds it; creates the file.

        Raises `OSError` if the file cannot be made or this file system has no locks.
        """
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        taken = False
        try:
            # The holder before may have removed the file between our open and our lock: then it is no lock.
            taken = _lock(handle) and self._is_current(handle)
        finally:
            if not taken:
                os.close(handle)
        if taken:
            self._handle = handle
        return taken

    def wait(self, seconds: float) -> bool:
        """Take the lock, waiting up to `seconds` for its holder; False if it is still held then."""
        until = time.monotonic() + seconds
        while not self.acquire():
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        return True

    def release(self) -> None:
        """Remove the file and let go of the lock. Harmless when repeated."""
        if self._handle is None:
            return
        if sys.platform == "win32":  # an open file cannot be removed there, a locked one not opened
            os.close(self._handle)
            with suppress(OSError):
                self.path.unlink()
        else:
            with suppress(OSError):
                self.path.unlink()
            os.close(self._handle)
        self._handle = None

    def _is_current(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except FileNotFoundError:
            return False


class Run:
    """This running program, as other windows on the same database see it."""

    def __init__(self, folder: Path | None) -> None:
        """Lock a new file in `folder`; None for a database in memory, which no other program sees.

        Lock files of programs that died are removed. Where the file system has no locks, other programs'
        runs count as ended.
        """
        self.name = secrets.token_hex(8)
        self._folder = folder
        self._lock: FileLock | None = None
        if folder is None:
            return
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.lock"):
                self.is_alive(path.stem)
            while self._lock is None:
                self.name = secrets.token_hex(8)
                lock = FileLock(folder / f"{self.name}.lock")
                if lock.acquire():  # another program's look for dead ones may be in the way, once
                    self._lock = lock

    def is_alive(self, name: str) -> bool:
        """Whether the run `name` is this one or another that has not ended."""
        if name == self.name:
            return True
        if self._folder is None or not name.isalnum():
            return False
        path = self._folder / f"{name}.lock"
        if not path.exists():
            return False
        other = FileLock(path)
        try:
            alive = not other.acquire()
        except OSError:
            return False
        other.release()
        return alive

    def release(self) -> None:
        """Say that this program has ended."""
        if self._lock is not None:
            self._lock.release()
