"""Matrix products with a model's dense weights: packed for the CPU's kernels, plain on a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

import torch
from torch.nn import functional

from engine import arena
from kernels.cpu import CpuPool, PackedLinear
from kernels.layout import packed_linear_nbytes


class Linear(Protocol):
    """y = W x for rows of x; the number format of x and y is the backend's."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, inputs] to [tokens, outputs]."""
        ...


class CpuLinear:
    """A packed bf16 matrix, multiplied by the CPU pool; float32 in and out."""

    def __init__(self, pool: CpuPool, packed: PackedLinear) -> None:
        self.pool = pool
        self.packed = packed

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [tokens, inputs] to [tokens, outputs]."""
        return self.pool.linear(x, self.packed)


class CpuLinears:
    """Packs matrices one after the other into one arena, for its huge pages; made for known shapes."""

    def __init__(self, pool: CpuPool, shapes: Iterable[tuple[int, int]]) -> None:
        self._pool = pool
        self._arena = arena.allocate(sum(_pages(packed_linear_nbytes(*shape)) for shape in shapes))
        self._used = 0

    def add(self, weight: torch.Tensor) -> CpuLinear:
        """Pack the next matrix, bf16 [outputs, inputs]."""
        packed = PackedLinear.from_weight(weight)
        place = self._arena[self._used : self._used + packed.nbytes]
        self._used += _pages(packed.nbytes)
        return CpuLinear(self._pool, replace(packed, data=place.copy_(packed.data)))


def _pages(nbytes: int) -> int:
    """Rounded up to whole pages."""
    return -(-nbytes // 4096) * 4096


class PlainLinear:
    """A plain matrix on the device where its inputs are, in their number format."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, inputs] to [tokens, outputs]; rounds x to the weight's format."""
        return functional.linear(x.to(self.weight.dtype), self.weight)
