"""Python work beside the window: one thread, one job after the other, and the window keeps its turn.

Python lets one thread compute at a time, and a thread that wants its turn waits up to 5 ms, each time: the
window would stutter. While a job runs here the wait is a tenth of that.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import TypeVar, cast

from app.widgets.errand import Errand

Result = TypeVar("Result")

TURN = 0.0005  # seconds


def run_aside(work: Callable[[], Result], done: Callable[[Errand[Result]], None]) -> None:
    """Do `work` when that asked for before is done; `done` is a method of an object of Qt: see `Errand`."""
    errand = Errand(work, done)
    _errands().put(cast(Errand[object], errand))


@cache
def _errands() -> SimpleQueue[Errand[object]]:
    errands: SimpleQueue[Errand[object]] = SimpleQueue()
    # A daemon: the program does not wait for formulas when it ends.
    threading.Thread(target=_work, args=(errands,), name="aside", daemon=True).start()
    return errands


def _work(errands: SimpleQueue[Errand[object]]) -> None:
    usual = sys.getswitchinterval()
    while True:
        errand = errands.get()
        sys.setswitchinterval(TURN)
        errand.run()
        sys.setswitchinterval(usual)
