"""Whether the program ended properly the last time: a file that is there only while it runs.

After a crash inside a library, a kill or a power cut the file is still there at the next start. What Python's
faulthandler wrote meanwhile tells the first of these from the others.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from engine.errors import EngineError
from engine.files import write_atomically
from engine.version import version

log = logging.getLogger(__name__)

MAX_CRASH_BYTES = 40_000


@dataclass(frozen=True)
class BadEnding:
    """A run that did not end properly: when it began, its version, and the stacks of a crash ("": none)."""

    started: str
    version: str
    crash: str


class RunMarker:
    """Marks that the program runs. `folder` is the log's; `crash_log` is where faulthandler writes."""

    def __init__(self, folder: Path, crash_log: Path) -> None:
        self._path = folder / "running.json"
        self._crash_log = crash_log
        self.before: BadEnding | None = None  # after `begin`: how the run before ended

    def begin(self) -> BadEnding | None:
        """Mark that this run begins; how the one before ended, if that was not properly.

        Where nothing can be written, nothing is known at the next start either.
        """
        self.before = self._read()
        mark = {
            "started": f"{datetime.now():%Y-%m-%d %H:%M:%S}",
            "version": version(),
            "crash_bytes": _size(self._crash_log),
        }
        try:
            write_atomically(self._path, json.dumps(mark))
        except EngineError as error:
            log.warning("a bad end of this run will not be noticed: %s", error)
        return self.before

    def end(self) -> None:
        """This run ends properly. May be called again."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _read(self) -> BadEnding | None:
        try:
            text = self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        try:
            mark = json.loads(text)
            started, by, offset = str(mark["started"]), str(mark["version"]), int(mark["crash_bytes"])
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            started, by, offset = "", "", _size(self._crash_log)  # cut off while it was written
        return BadEnding(started, by, _tail(self._crash_log, offset))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tail(path: Path, offset: int) -> str:
    """What was added to a file since it had `offset` bytes, the last part of it if that is much."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, offset, _size(path) - MAX_CRASH_BYTES))
            return file.read(MAX_CRASH_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
