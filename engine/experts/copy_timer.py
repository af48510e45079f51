"""How long copies took that run beside everything else, by events that nobody waits for."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator

import torch

_KEPT = 16  # finished copies are summed up once more than so many are open


class CopyTimer:
    """Times pieces of work on the current stream. Events are made by `make`, with timing, and used again."""

    def __init__(self, make: Callable[[], torch.cuda.Event]) -> None:
        self._make = make
        self._open: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()
        self._free: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._seconds = 0.0
        self.last: torch.cuda.Event | None = None  # the end of what was timed last

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Time what is enqueued inside."""
        if len(self._open) > _KEPT:
            self._collect()
        begin, end = self._free.pop() if self._free else (self._make(), self._make())
        begin.record()
        yield
        end.record()
        self._open.append((begin, end))
        self.last = end

    def take_seconds(self) -> float:
        """The time of all that has ended since the last call; what still runs is for a later call."""
        self._collect()
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def _collect(self) -> None:
        while self._open and self._open[0][1].query():  # type: ignore[no-untyped-call]
            begin, end = pair = self._open.popleft()
            self._seconds += begin.elapsed_time(end) / 1e3
            self._free.append(pair)
