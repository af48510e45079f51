"""How busy the machine is: memory and load of the processor and the graphics card. Reading may take a while.

Drivers can be slow (starting NVML takes up to a second), so nothing here belongs into the GUI thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Use:
    """Bytes of a memory. `ours` is this program's part of `used`, None where it is not known here."""

    total: int
    used: int
    ours: int | None = None


@dataclass(frozen=True)
class GpuReading:
    """A graphics card; None where its driver does not tell. `load` from 0 to 1, degrees Celsius."""

    memory: Use | None = None
    load: float | None = None
    temperature: int | None = None


@dataclass(frozen=True)
class MachineReading:
    """One look at the machine. Loads from 0 to 1 of all cores since the look before, None at the first."""

    ram: Use
    cpu_load: float | None = None
    our_load: float | None = None
    gpu: GpuReading | None = None  # None: no graphics card was asked about, or none answers


@dataclass(frozen=True)
class _Ticks:
    """Seconds of processor time so far: of all cores, of these at work, and this program's; and when."""

    whole: float
    busy: float
    ours: float
    at: float


class MachineReader:
    """Call it with NVML's number of the graphics card in use, or None. Threads that share one take turns."""

    def __init__(self, nvml: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._gpus = GpuReader(nvml)
        self._process = psutil.Process()
        self._clock = clock
        self._before: _Ticks | None = None
        self._turn = threading.Lock()

    def __call__(self, gpu_index: int | None) -> MachineReading:
        """Look at the machine now."""
        with self._turn:
            load, ours = self._loads()
            gpu = None if gpu_index is None else self._gpus.read(gpu_index)
            return MachineReading(read_ram(self._process), load, ours, gpu)

    def _loads(self) -> tuple[float | None, float | None]:
        before, self._before = self._before, _ticks(self._process, self._clock())
        now = self._before
        if before is None or now.whole <= before.whole or now.at <= before.at:
            return None, None
        load = _part((now.busy - before.busy) / (now.whole - before.whole))
        cores = psutil.cpu_count() or 1
        return load, min(load, _part((now.ours - before.ours) / ((now.at - before.at) * cores)))


class GpuReader:
    """Asks graphics cards through NVML, which the first question starts; without a driver nothing answers."""

    def __init__(self, nvml: Any = None) -> None:
        self._nvml = nvml
        self._handles: dict[int, Any] = {}  # by NVML's number of the card
        self._failed = False

    def read(self, index: int) -> GpuReading | None:
        """What the card that NVML numbers `index` says; None if none answers."""
        if self._failed:
            return None
        if self._nvml is None:
            import pynvml

            self._nvml = pynvml
        nvml = self._nvml
        try:
            if not self._handles:
                nvml.nvmlInit()
            if index not in self._handles:
                self._handles[index] = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            log.info("no readings of the graphics card: %s", error)
            self._failed = True
            return None
        handle = self._handles[index]
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        load = self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100)
        heat = self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        return GpuReading(
            memory=None if memory is None else Use(int(memory.total), int(memory.used)),
            load=None if load is None else _part(float(load)),
            temperature=None if heat is None else int(heat),
        )

    def _ask(self, question: Callable[[], Any]) -> Any:
        """The answer; None where the card does not support the question (divided ones and laptops often)."""
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def read_ram(process: psutil.Process) -> Use:
    """Main memory: what other programs and the system need counts as used, caches do not."""
    memory = psutil.virtual_memory()
    ours = int(process.memory_info().rss)
    return Use(memory.total, max(ours, memory.total - memory.available), ours)


def _ticks(process: psutil.Process, now: float) -> _Ticks:
    # Not psutil's own percentages: they remember the last call by thread, and a pool's threads vary.
    times = psutil.cpu_times()
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # counted as user time already
    whole = sum(times) - guests
    own = process.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return _Ticks(whole, whole - idle, own.user + own.system, now)


def _part(value: float) -> float:
    return max(0.0, min(1.0, value))
