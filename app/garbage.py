"""Collects Python's cyclic garbage in the window's thread alone.

Python does it in whichever thread allocates at the moment. Objects of Qt may be in that garbage, and they
must not be destroyed in another thread than their own: a timer that was left over ended the program.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot

from engine.garbage import set_collector

INTERVAL_MS = 1000
_PATIENCE = 2.0  # seconds that another thread waits for the window's: that may have ended meanwhile


def due(counts: tuple[int, int, int], thresholds: tuple[int, int, int], *, quiet: bool) -> int | None:
    """The oldest generation that is to be collected; None for nothing yet.

    The oldest of all takes about a tenth of a second with a model's libraries loaded: only when it is quiet.
    """
    if counts[0] <= thresholds[0]:
        return None
    if counts[1] <= thresholds[1]:
        return 0
    return 2 if quiet and counts[2] > thresholds[2] else 1


class GarbageCollector(QObject):
    """Takes Python's place from `start` to `stop`; `quiet` says whether a short pause would not be seen."""

    _wanted = Signal(object)  # a threading.Event, set when all is collected

    def __init__(self, quiet: Callable[[], bool], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._quiet = quiet
        self._timer = QTimer(self, interval=INTERVAL_MS, timerType=Qt.TimerType.VeryCoarseTimer)
        self._timer.timeout.connect(self.look)
        self._wanted.connect(self._collect_all, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """From now on nothing is collected elsewhere."""
        gc.disable()
        set_collector(self.collect_now)
        self._timer.start()

    def stop(self) -> None:
        """Leave it to Python again."""
        self._timer.stop()
        set_collector()
        gc.enable()

    def collect_now(self) -> None:
        """Collect everything; another thread than the window's waits until it has done that."""
        if QThread.currentThread() is self.thread():
            gc.collect()
            return
        done = threading.Event()
        self._wanted.emit(done)
        done.wait(_PATIENCE)

    @Slot(object)
    def _collect_all(self, done: threading.Event) -> None:
        gc.collect()
        done.set()

    @Slot()
    def look(self) -> None:
        """Collect what is due."""
        generation = due(gc.get_count(), gc.get_threshold(), quiet=self._quiet())
        if generation is not None:
            gc.collect(generation)
