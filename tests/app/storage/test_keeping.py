"""Texts that change while a disk may be full."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from app.storage.errors import StorageError
from app.storage.keeping import Kept

FULL = StorageError("The draft could not be saved.", why="The disk is full.")


class Operation:
    """One save under way, settled when the disk gets to it."""

    def __init__(self, disk: Disk, key: int, text: str) -> None:
        self._disk, self._key, self._text = disk, key, text

    def then(self, done: Callable[[None], object], failed: Callable[[StorageError], object]) -> None:
        self._done, self._failed = done, failed

    def settle(self) -> None:
        if self._disk.full:
            self._failed(FULL)
        else:
            self._disk.texts[self._key] = self._text
            self._done(None)


class Disk:
    """Saves in order, some time after it was asked to."""

    def __init__(self) -> None:
        self.full = False
        self.texts: dict[int, str] = {}
        self.told: list[StorageError] = []
        self.waits = 0  # how often another try was asked for
        self._queue: list[Operation] = []
        self.kept: Kept[int] = Kept(self.save, self.told.append, self._wait)

    def save(self, key: int, text: str) -> Operation:
        self._queue.append(Operation(self, key, text))
        return self._queue[-1]

    def work(self) -> None:
        queue, self._queue = self._queue, []
        for operation in queue:
            operation.settle()

    def _wait(self) -> None:
        self.waits += 1


def test_a_full_disk_is_told_of_once_and_the_text_is_saved_when_there_is_room() -> None:
    disk = Disk()
    disk.full = True
    for text in ("a", "ab", "abc"):
        disk.kept.put(1, text)
        disk.kept.flush()
        disk.work()
    assert (disk.told, disk.waits, disk.texts) == ([FULL], 3, {})
    disk.full = False
    disk.kept.flush()  # as the timer does
    disk.work()
    assert disk.texts == {1: "abc"}
    disk.kept.flush()
    disk.work()
    disk.full = True
    disk.kept.put(1, "abcd")
    disk.kept.flush()
    disk.work()
    assert len(disk.told) == 2  # another trouble is told of again


@given(
    st.lists(
        st.one_of(st.sampled_from(["flush", "work", "full", "room"]), st.tuples(st.integers(1, 2), st.text()))
    )
)
def test_the_newest_text_is_what_stays(steps: list[str | tuple[int, str]]) -> None:
    disk = Disk()
    newest: dict[int, str] = {}
    for step in steps:
        match step:
            case "flush":
                disk.kept.flush()
            case "work":
                disk.work()
            case "full" | "room":
                disk.full = step == "full"
            case (key, text):
                newest[key] = text
                disk.kept.put(key, text)
    disk.full = False
    for _ in range(2):
        disk.work()
        disk.kept.flush()
    disk.work()
    assert disk.texts == newest
