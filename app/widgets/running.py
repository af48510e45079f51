"""What the whole program knows of work that has a window of its own: what runs, and how it ended."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject, Signal


class RunningTasks(QObject):
    """`changed`: work began or ended. `ended`: its kind, seconds, and success, unless it was cancelled."""

    changed = Signal()
    ended = Signal(str, float, bool)

    def __init__(self) -> None:
        super().__init__()
        self._kinds: list[str] = []

    @property
    def kinds(self) -> tuple[str, ...]:
        """What runs now."""
        return tuple(self._kinds)

    def begin(self, kind: str) -> None:
        """Work of a kind begins."""
        self._kinds.append(kind)
        self.changed.emit()

    def end(self, kind: str, seconds: float, succeeded: bool | None) -> None:
        """It has ended; without success or failure where it was cancelled."""
        self._kinds.remove(kind)
        self.changed.emit()
        if succeeded is not None:
            self.ended.emit(kind, seconds, succeeded)


@cache
def running_tasks() -> RunningTasks:
    """The program's own."""
    return RunningTasks()
