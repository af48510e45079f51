"""A quick measurement of how fast all usable cores together read memory: what bounds decode on the CPU."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from engine.units import MIB

# Larger than the last-level caches of desktops and of most servers' sockets.
_BUFFER = 512 * MIB


def measure_read_bandwidth(threads: int, available: int, seconds: float = 0.3) -> float:
    """Bytes per second that `threads` threads read together, the best of the passes within `seconds`.

    Takes at most an eighth of the `available` bytes. numpy's reductions release the GIL and run at memory
    speed: 30 GB/s with two threads where a plain C loop reads 31 (a server's cores, 2026).
    """
    size = max(MIB, min(_BUFFER, available // 8) // threads) // 8
    with ThreadPoolExecutor(threads, thread_name_prefix="read-probe") as pool:
        # Filled, not zeroed: untouched zero pages are all the same physical page and come from the cache.
        buffers = list(pool.map(lambda _: np.full(size, 1, dtype=np.int64), range(threads)))
        best, started = 0.0, time.perf_counter()
        while not best or time.perf_counter() - started < seconds:
            begin = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, buffers))
            best = max(best, threads * size * 8 / (time.perf_counter() - begin))
    return best
