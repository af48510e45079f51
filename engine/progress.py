"""How a long operation reports progress and learns that it should stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import Cancelled


@dataclass(frozen=True)
class Progress:
    """One step of a long operation: what is done, `done` of `total` in `unit` (total 0: unknown)."""

    what: str
    done: float = 0
    total: float = 0
    unit: str = ""


ProgressCallback = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Report to nobody: the default where a caller does not ask for progress."""


class CancelToken:
    """A flag that one thread raises and another reads between steps. Raising it twice is harmless."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the operation to stop; it does within one token, one file block, or one probe."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether stopping was asked for."""
        return self._event.is_set()

    def raise_if_cancelled(self) -> None:
        """Leave the operation with `Cancelled` if stopping was asked for."""
        if self._event.is_set():
            raise Cancelled
