"""Take a time: repeat an action until the median can be trusted or the patience is used up."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """The median of the repetitions in seconds, and their interquartile range over the median."""

    seconds: float
    spread: float

    @staticmethod
    def of(times: list[float]) -> Timing:
        """Summarise measured times, at least one."""
        median = statistics.median(times)
        if len(times) < 4:
            return Timing(median, 0.0)
        first, _, third = statistics.quantiles(times, n=4)
        return Timing(median, (third - first) / median if median > 0 else 0.0)


def measure(
    action: Callable[[], float | None],
    *,
    seconds: float = 0.3,
    least: int = 7,
    most: int = 2000,
    warm_up: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Time single calls of `action` for about `seconds`, between `least` and `most` of them.

    The first `warm_up` calls are not counted: they wake threads and fill buffers. The action must have
    finished its work when it returns (synchronise a GPU inside it). If it returns seconds they are what
    counts, for an action that prepares something first.
    """
    for _ in range(warm_up):
        action()
    times: list[float] = []
    end = clock() + seconds
    while len(times) < least or (len(times) < most and clock() < end):
        begin = clock()
        taken = action()
        times.append(clock() - begin if taken is None else taken)
    return Timing.of(times)
