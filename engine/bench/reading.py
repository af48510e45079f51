"""How fast the pool's threads read memory: what every figure of the kernels is held against."""

from __future__ import annotations

import itertools

from torch import Tensor

from engine.bench.timing import time_calls
from engine.progress import CancelToken
from engine.units import MIB
from kernels.bandwidth import READ_STYLES
from kernels.cpu import CpuPool

_TURN = 1024 * MIB  # as in kernels.bandwidth


def read_gbs(pool: CpuPool, memory: Tensor, seconds: float, cancel: CancelToken) -> float:
    """GB/s of the fastest turn through `memory`, uint8 on the CPU: the very pages that experts lie in.

    Turns are read in several ways, because it depends on the machine which is the fastest.
    Raises Cancelled between two turns.
    """
    size = min(_TURN, memory.numel()) // 8 * 8
    turns = itertools.cycle(memory[: memory.numel() // size * size].view(-1, size))
    styles = itertools.cycle(READ_STYLES)

    def turn() -> None:
        style = next(styles)
        pool.read(next(turns), four_streams=style.four_streams, prefetch_words=style.prefetch_words)

    return size / time_calls(turn, seconds, cancel).best / 1e9
