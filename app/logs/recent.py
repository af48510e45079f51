"""What went wrong lately, told without anything that anybody wrote: for the diagnostic report.

A log entry may quote a title, a path or a text. Of an entry of this run its template is told ("no log file:
%s"), which stands in the program's source, and the places of its exception; of an entry that an earlier run
left in the file, only when it was, how grave, and in which part of the program.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Sequence

from app.fault_report import short_path, trace
from app.logs.lines import Line

MOST_ENTRIES = 40
_OURS = ("app", "engine", "kernels")
_HEAD = re.compile(r"^(\S+ \S+) (WARNING|ERROR|CRITICAL) .*? ([A-Za-z_][\w.]*): ")
_FRAME = re.compile(r'^ +File "(.*)", line (\d+), in ([\w.<>]+)$')
_KIND = re.compile(r"^([A-Za-z_][\w.]*)(:|$)")


class RecentFaults(logging.Handler):
    """Keeps the last warnings and errors of this run. Written to by any thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._entries: deque[str] = deque(maxlen=MOST_ENTRIES)
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an entry, told without its arguments."""
        text = describe(record)
        with self._guard:
            self._entries.append(text)

    def entries(self) -> list[str]:
        """The last ones, the oldest first."""
        with self._guard:
            return list(self._entries)


def describe(record: logging.LogRecord) -> str:
    """An entry without what it quotes: its template, and the places and kind of its exception."""
    when = logging.Formatter().formatTime(record)
    ours = record.name.partition(".")[0] in _OURS and isinstance(record.msg, str)
    lines = [f"{when} {record.levelname} {record.name}: {record.msg if ours else '(not ours: left out)'}"]
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        lines += [f"  {line}" for line in trace(error)]
    return "\n".join(lines)


def earlier(lines: Sequence[Line]) -> list[str]:
    """The same for entries of the log's text, of which neither template nor arguments are known."""
    told = []
    for line in lines:
        head = _HEAD.match(line.text)
        if line.level < logging.WARNING or head is None:
            continue
        parts = [f"{head[1]} {head[2]} {head[3]}"]
        for row in line.text.splitlines()[1:]:
            frame, kind = _FRAME.match(row), _KIND.match(row)
            if frame is not None:
                parts.append(f"    {short_path(frame[1])}:{frame[2]} in {frame[3]}")
            elif kind is not None and kind[1].rpartition(".")[2].endswith(("Error", "Exception")):
                parts.append(f"  {kind[1]}")
        told.append("\n".join(parts))
    return told[-MOST_ENTRIES:]


recent_faults = RecentFaults()
