"""Which running programs share a database: each holds a lock on a file of its own."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from engine.file_lock import FileLock


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
