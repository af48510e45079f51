"""The CPU and the copies at the same time: how much they disturb one another.

Both read the same memory. One side alone says nothing about that, and the rates differ from machine to
machine: on a server both together move a fifth more than the CPU alone, on a desktop perhaps nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from engine.calibration.cpu_experts import CpuExperts
from engine.calibration.gpu_probes import GpuProbes
from engine.calibration.timing import Timing, measure

TOGETHER_COUNTS = (1, 16, 128)  # tokens per expert: reading weights, between, computing with them
_SECONDS = 0.4
_LEAST_CALLS = 4


class TogetherProbes:
    """Times of a side while the other works. Protocol, for each number of tokens per expert:

    1. the CPU alone: calls with as many experts as a token chooses, one after the other without a pause;
    2. the same calls in a thread, while this thread keeps the copy stream busy with whole experts; it ends
       after some calls and copies, the copies first;
    3. the CPU's slowdown is the median of the calls that lie within the copies over that of the calls alone,
       both per expert; a copy's time is the sum of all copies by their own clocks over their number.

    Nothing here is per panel: the costs of starting are known from elsewhere (`GpuProbes.copy_start`,
    `CpuExperts.start`), and what remains of an expert's time is in proportion to its panels.
    """

    def __init__(self, cpu: CpuExperts, gpu: GpuProbes) -> None:
        self._cpu = cpu
        self._gpu = gpu
        self._copies: dict[int, Timing] = {}

    def cpu_alone(self, tokens: int) -> Timing:
        """One expert on the CPU, calls without a pause, nothing copied."""
        timing = measure(self._cpu.call(tokens, self._cpu.at_once), seconds=_SECONDS, least=_LEAST_CALLS)
        return Timing(timing.seconds / self._cpu.at_once, timing.spread)

    def cpu_together(self, tokens: int) -> Timing:
        """The same while experts are copied."""
        calls = _Repeated(self._cpu.call(tokens, self._cpu.at_once))
        with calls:
            begin = time.perf_counter()
            count, seconds = self._gpu.copies(
                lambda: calls.finished < _LEAST_CALLS or time.perf_counter() < begin + _SECONDS
            )
            end = time.perf_counter()
        self._copies[tokens] = Timing(seconds / count, 0.0)
        timing = Timing.of(calls.between(begin, end))
        return Timing(timing.seconds / self._cpu.at_once, timing.spread)

    def copy_together(self, tokens: int) -> Timing:
        """One expert's copy while the CPU runs others with `tokens` tokens each."""
        if tokens not in self._copies:
            self.cpu_together(tokens)
        return self._copies[tokens]


class _Repeated:
    """Calls something again and again in a thread, inside a `with`; keeps when each call began and ended."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._times: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = ThreadPoolExecutor(1, "calls")

    @property
    def finished(self) -> int:
        """Calls so far. Raises what a call raised."""
        if self._running.done():
            self._running.result()
        return len(self._times)

    def between(self, begin: float, end: float) -> list[float]:
        """Seconds of the calls that lie within a time, or of all if none does."""
        within = [last - first for first, last in self._times if first >= begin and last <= end]
        return within or [last - first for first, last in self._times]

    def __enter__(self) -> _Repeated:
        self._running = self._thread.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.shutdown()

    def _run(self) -> None:
        while not self._stop.is_set():
            begin = time.perf_counter()
            self._call()
            self._times.append((begin, time.perf_counter()))
