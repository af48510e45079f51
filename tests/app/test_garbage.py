import gc
import threading
import weakref

import pytest
from PySide6.QtCore import QCoreApplication, QThread, QTimer
from pytestqt.qtbot import QtBot

from app.garbage import GarbageCollector, due
from engine.garbage import collect

THRESHOLDS = (700, 10, 10)


@pytest.mark.parametrize(
    ("counts", "quiet", "expected"),
    [
        ((700, 10, 10), True, None),
        ((701, 10, 11), True, 0),
        ((701, 11, 10), True, 1),
        ((701, 11, 11), True, 2),
        ((701, 11, 11), False, 1),  # a pause would be seen
    ],
)
def test_what_is_due(counts: tuple[int, int, int], quiet: bool, expected: int | None) -> None:
    assert due(counts, THRESHOLDS, quiet=quiet) == expected


class Remains(QTimer):
    """Refers to itself, so that only a collection of garbage ends it; notes where that was."""

    def __init__(self, ended_in: list[QThread]) -> None:
        super().__init__(interval=1000)
        self.me = self
        self.start()
        self.destroyed.connect(lambda: ended_in.append(QThread.currentThread()))


def test_what_is_left_of_qt_ends_in_the_windows_thread(qtbot: QtBot) -> None:
    collector = GarbageCollector(lambda: True)
    collector.start()
    ended: list[QThread] = []
    try:
        Remains(ended)

        def fill() -> None:  # enough for Python to have collected here
            for _ in range(200_000):
                cycle: list[object] = []
                cycle.append(cycle)

        other = threading.Thread(target=fill)
        other.start()
        other.join()
        assert not ended
        for _ in range(30):  # as many looks as it takes to come to the oldest
            for _ in range(1000):
                cycle: list[object] = []
                cycle.append(cycle)
            collector.look()
        application = QCoreApplication.instance()
        assert application is not None
        assert ended == [application.thread()]
    finally:
        collector.stop()
    assert gc.isenabled()


def test_another_thread_has_the_window_collect(qtbot: QtBot) -> None:
    """As the engine does when the graphics card's memory is short."""
    collector = GarbageCollector(lambda: True)
    collector.start()
    ended: list[QThread] = []
    collected: list[bool] = []
    try:
        Remains(ended)

        def need() -> None:
            collect()
            collected.append(bool(ended))

        other = threading.Thread(target=need)
        other.start()
        qtbot.waitUntil(lambda: bool(collected))
        other.join()
    finally:
        collector.stop()
    application = QCoreApplication.instance()
    assert application is not None
    assert collected == [True]
    assert ended == [application.thread()]


def test_without_a_window_garbage_is_collected_at_once() -> None:
    weak = weakref.ref(_Cycle())
    collect()
    assert weak() is None


class _Cycle:
    def __init__(self) -> None:
        self.me = self
