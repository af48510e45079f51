"""The last lines of the log, in memory: what the log window shows."""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

MOST_LINES = 2000
_LEVEL = re.compile(r"^\S+ \S+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) ")


@dataclass(frozen=True)
class Line:
    """An entry as the file has it (it may have several lines), and its level as `logging` counts them."""

    level: int
    text: str


class LastLines(logging.Handler):
    """Keeps the last entries. Written to by any thread, read by the window's."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[Line] = deque(maxlen=MOST_LINES)
        self._count = 0
        self._guard = threading.Lock()

    @property
    def count(self) -> int:
        """How many entries there have been: looked at often, and cheap."""
        return self._count

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an entry."""
        self.add([Line(record.levelno, self.format(record))])

    def add(self, lines: Iterable[Line]) -> None:
        """Keep entries, also from before this start."""
        with self._guard:
            for line in lines:
                self._lines.append(line)
                self._count += 1

    def since(self, count: int) -> tuple[list[Line], int]:
        """The entries after the first `count` that are still kept, and how many there have been by now."""
        with self._guard:
            new = min(self._count - count, len(self._lines))
            return list(islice(self._lines, len(self._lines) - new, None)), self._count


def parse(text: str) -> list[Line]:
    """The entries in a piece of the log file; a line without a level belongs to the entry before it."""
    lines: list[Line] = []
    for row in text.splitlines():
        found = _LEVEL.match(row)
        if found:
            lines.append(Line(logging.getLevelNamesMapping()[found[1]], row))
        elif lines:
            lines[-1] = Line(lines[-1].level, f"{lines[-1].text}\n{row}")
    return lines


last_lines = LastLines()
