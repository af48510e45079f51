"""Where the log goes: a rotating file, the terminal if there is one, and the last lines in memory."""

from __future__ import annotations

import faulthandler
import logging
import logging.handlers
import sys
from pathlib import Path

from app.logs.lines import last_lines, parse
from app.logs.recent import recent_faults
from app.paths import ensure_dir, log_path
from engine.errors import EngineError

LOG_BYTES = 1_000_000  # per file
LOG_FILES = 4
_BEFORE_BYTES = 30_000  # of the log of earlier starts, for the log window
_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
log = logging.getLogger(__name__)


def start_logging() -> None:
    """Log to a rotating file, and warnings to the terminal, if there is one.

    A folder that cannot be written to costs the log, not the program.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    if sys.stderr is not None:  # None in a windowed program
        console = logging.StreamHandler()
        console.setLevel(logging.WARNING)
        root.addHandler(console)
    root.addHandler(last_lines)
    root.addHandler(recent_faults)
    try:
        path = log_path()
        ensure_dir(path.parent)
        last_lines.add(parse(_end_of(path)))
        file = logging.handlers.RotatingFileHandler(
            path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
        )
    except (OSError, EngineError) as error:
        log.warning("no log file: %s", error)
    else:
        root.addHandler(file)
    for handler in root.handlers:
        handler.setFormatter(logging.Formatter(_FORMAT))


def crash_log_path() -> Path:
    """Where the stacks of a crash inside a library are written."""
    return log_path().with_name("crash.log")


def record_crashes() -> None:
    """Have a crash inside a library leave its stacks in `crash.log` beside the log, where there is one."""
    try:
        # Never closed: faulthandler writes to it in the last moment.
        faulthandler.enable(crash_log_path().open("a", encoding="utf-8"))
    except OSError as error:
        log.warning("no crash log: %s", error)


def _end_of(path: Path) -> str:
    """The last part of the log of earlier starts; a few kilobytes, whatever the file's size."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _BEFORE_BYTES))
        return file.read(_BEFORE_BYTES).decode("utf-8", "replace")
