"""A quick measurement of how fast the pool's threads together read memory: what bounds decode on the CPU."""

from __future__ import annotations

from engine.units import GIB
from kernels.bandwidth import PlainPool, measure_read_gbs

# Several times the last-level caches of servers, and filled in some tenths of a second.
_BUFFER = 2 * GIB


def measure_read_bandwidth(threads: int, available: int, seconds: float = 0.3) -> float:
    """Bytes per second that `threads` threads read together, the best of the turns within `seconds`.

    Takes at most an eighth of the `available` bytes.
    """
    with PlainPool(threads) as pool:
        return 1e9 * measure_read_gbs(pool, seconds, max_bytes=min(_BUFFER, available // 8))
