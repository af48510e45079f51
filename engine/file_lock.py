"""Locks between programs, on files. Torch-free.

The system drops a lock when its process ends, however it ends, so a lock says more than a process number:
numbers are used again, and start times move with the clock.
"""

from __future__ import annotations

import os
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
