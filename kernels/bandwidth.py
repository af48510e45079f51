"""How fast this machine reads memory: the yardstick for kernels whose speed is the memory's. Torch-free."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
import psutil
from numpy.typing import NDArray

from kernels import native
from kernels.cgroup import read_limits
from kernels.isa import Isa
from kernels.threads import pinning_allowed, usable_cpus


class ReadStyle(NamedTuple):
    """How each thread walks through its part of the memory: the options of `CpuPool.read`."""

    four_streams: bool
    prefetch_words: int


# Servers have up to 300 MB of last-level cache and more: a buffer of many times that is not served by it.
_BUFFER_BYTES = 4 << 30
# A thread's part of a turn must be long: on two cores of a Zen 4 server parts of 1 MB were read at 36 GB/s,
# parts of 16 MB at 43. On 16 cores parts have 8 MB.
_TURN_BYTES = 1 << 30
# Four streams side by side and asking ahead (4 KB, 1 KB) help where a core's own prefetching is weak and hurt
# where it is not: a measurement tries all, and the best turn counts.
READ_STYLES = (ReadStyle(False, 0), ReadStyle(False, 512), ReadStyle(True, 0), ReadStyle(True, 128))


class ReadingPool(Protocol):
    """A pool of threads that can read memory: `kernels.cpu.CpuPool`."""

    @property
    def native(self) -> Any:
        """The native pool (csrc/bindings.cpp)."""

    @property
    def threads(self) -> int:
        """Its threads, the caller's included."""


def measure_read_gbs(pool: ReadingPool, seconds: float = 1.0, max_bytes: int | None = None) -> float:
    """Return the rate in GB/s (1e9 bytes) at which all threads of the pool together read memory.

    The best of many turns of 1 GiB through a buffer of 4 GiB, in several ways of reading. The buffer is
    smaller where that would be more than a quarter of the available memory, and at most `max_bytes`; a small
    one measures the caches. Filling it takes some tenths of a second per GiB beside the `seconds`. Raises
    OSError if the system refuses the memory.
    """
    size = min(_BUFFER_BYTES, available_memory() // 4, max_bytes if max_bytes is not None else _BUFFER_BYTES)
    turn = max(8, min(_TURN_BYTES, size) // 8 * 8)
    turns = max(1, size // turn)
    buffer = _filled(turns * turn, pool.threads)
    start = buffer.ctypes.data
    best, end = 0.0, time.perf_counter() + seconds
    for count, index in enumerate(itertools.cycle(range(turns))):
        if count >= len(READ_STYLES) and time.perf_counter() >= end:
            break
        begin = time.perf_counter()
        pool.native.read(start + index * turn, turn // 8, *READ_STYLES[count % len(READ_STYLES)])
        best = max(best, turn / (time.perf_counter() - begin) / 1e9)
    return best


class PlainPool:
    """A pool that can only read, for those who must not import torch."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        cpus = usable_cpus() if pinning_allowed() else ()
        self.native: Any = native.load().Pool(threads, Isa.PORTABLE.value, cpus)

    def __enter__(self) -> PlainPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.native.close()


def available_memory() -> int:
    """Return the bytes that this process may still take, within its control group's limit."""
    available: int = psutil.virtual_memory().available
    limits = read_limits()
    return available if limits.memory is None else min(available, max(0, limits.memory - limits.memory_used))


def _filled(size: int, threads: int) -> NDArray[np.uint64]:
    """Memory in huge pages where the system has them, as the experts' arena is.

    Filled, not zeroed: untouched pages are all the same physical page and come from the cache. By all
    threads, so that on a machine of several nodes it lies near them.
    """
    if hasattr(mmap, "MAP_ANONYMOUS"):
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    words = np.frombuffer(memory, dtype=np.uint64)
    with ThreadPoolExecutor(threads, thread_name_prefix="fill") as fillers:
        list(fillers.map(lambda part: part.fill(1), np.array_split(words, threads)))
    return words
