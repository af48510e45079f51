"""Python work beside the window: one thread, one job after the other, and the window keeps its turn.

Python lets one thread compute at a time, and a thread that wants its turn waits up to 5 ms, each time: the
window would stutter. While a job runs here the wait is a tenth of that.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue

log = logging.getLogger(__name__)

TURN = 0.0005  # seconds


def run_aside(job: Callable[[], object]) -> None:
    """Run a job when those before it are done. It tells of its result by itself, with a signal."""
    _jobs().put(job)


@cache
def _jobs() -> SimpleQueue[Callable[[], object]]:
    jobs: SimpleQueue[Callable[[], object]] = SimpleQueue()
    # A daemon: the program does not wait for formulas when it ends.
    threading.Thread(target=_work, args=(jobs,), name="aside", daemon=True).start()
    return jobs


def _work(jobs: SimpleQueue[Callable[[], object]]) -> None:
    usual = sys.getswitchinterval()
    while True:
        job = jobs.get()
        sys.setswitchinterval(TURN)
        try:
            job()
        except Exception:  # the thread's boundary: a fault of one job must not end the others
            log.exception("a job beside the window failed")
        finally:
            sys.setswitchinterval(usual)
