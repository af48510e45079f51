"""Matrix products with a model's dense weights: packed for the CPU's kernels, plain or in 8 bits on a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

import torch
from torch.nn import functional

from engine import arena
from engine.gpu_format import rows_unpacked, unpacked_bytes
from kernels.cpu import CpuPool, PackedLinear
from kernels.formats import WeightFormat
from kernels.gpu.support import usable
from kernels.layout import packed_linear_nbytes
from kernels.pack import quantise
from kernels.quantised import Int8Matrix, dequantise_int8

# Weights that torch unpacks at once, where Triton is missing: its float32 intermediates take 16 MB.
_AT_ONCE = 1 << 22


class Linear(Protocol):
    """y = W x for rows of x; the number format of x and y is the backend's."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, inputs] to [tokens, outputs]."""
        ...


class Linears(Protocol):
    """Makes the matrices of a model in one form."""

    @property
    def number_format(self) -> torch.dtype:
        """What the matrices are multiplied in."""
        ...

    def add(self, weight: torch.Tensor) -> Linear:
        """Take a matrix, bf16 [outputs, inputs] on the CPU."""
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

    number_format = torch.float32

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


class PlainLinears:
    """Copies matrices to a device, in a number format."""

    def __init__(self, device: torch.device, number_format: torch.dtype) -> None:
        self.number_format = number_format
        self._device = device

    def add(self, weight: torch.Tensor) -> PlainLinear:
        """Copy a matrix."""
        return PlainLinear(weight.to(self._device, self.number_format))


class QuantisedLinear:
    """A matrix in 8 bits on a GPU. A few tokens read it as it stands; for more it is unpacked, in parts.

    `workspace` takes the parts, flat, in the number format of the products; matrices share it.
    """

    def __init__(self, weight: Int8Matrix, workspace: torch.Tensor) -> None:
        self.weight = weight
        self._workspace = workspace
        self._rows = rows_unpacked(weight.rows, weight.cols, workspace.element_size())
        self._triton = usable(weight.values.device)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, inputs] to [tokens, outputs]; float32 or the workspace's format."""
        x = x.to(self._workspace.dtype).contiguous()
        if self._triton:
            from kernels.gpu.linear import MOST_TOKENS, linear_small

            if len(x) <= MOST_TOKENS:
                out = torch.empty(len(x), self.weight.rows, device=x.device)
                linear_small(x, self.weight, out)
                return out
        parts = [
            functional.linear(x, self._unpack(first)) for first in range(0, self.weight.rows, self._rows)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _unpack(self, first: int) -> torch.Tensor:
        """The rows from `first` on, as many as there is room for, in the workspace."""
        end, cols = min(first + self._rows, self.weight.rows), self.weight.cols
        out = self._workspace[: (end - first) * cols].view(-1, cols)
        if self._triton:
            from kernels.gpu.linear import dequantise

            dequantise(self.weight, out, first)
            return out
        step = max(1, _AT_ONCE // cols)
        for row in range(first, end, step):
            rows = slice(row, min(row + step, end))
            out[row - first : rows.stop - first] = dequantise_int8(
                self.weight.values[rows], self.weight.scales[rows]
            )
        return out


class QuantisedLinears:
    """Rounds matrices to 8 bits on the CPU and copies them to a device; made for known shapes."""

    def __init__(
        self,
        device: torch.device,
        number_format: torch.dtype,
        shapes: Iterable[tuple[int, int]],
        threads: int,
    ) -> None:
        self.number_format = number_format
        self._device = device
        self._threads = threads
        nbytes = unpacked_bytes(list(shapes), number_format.itemsize)
        self._workspace = torch.empty(nbytes // number_format.itemsize, dtype=number_format, device=device)

    def add(self, weight: torch.Tensor) -> QuantisedLinear:
        """Round and copy a matrix. Raises WeightRangeError for a weight that is too large for 8 bits."""
        return QuantisedLinear(self._matrix(weight), self._workspace)

    def _matrix(self, weight: torch.Tensor) -> Int8Matrix:
        step = -(-len(weight) // self._threads)
        parts = [weight[first : first + step] for first in range(0, len(weight), step)]
        with ThreadPoolExecutor(self._threads) as threads:  # the kernel runs without Python's lock
            rounded = list(threads.map(_to_8_bits, parts))
        return Int8Matrix(
            torch.cat([part.values for part in rounded]).to(self._device),
            torch.cat([part.scales for part in rounded]).to(self._device),
        )


def _to_8_bits(weight: torch.Tensor) -> Int8Matrix:
    matrix = quantise(weight, WeightFormat.INT8)
    assert isinstance(matrix, Int8Matrix)
    return matrix
