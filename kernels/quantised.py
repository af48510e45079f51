"""Matrices in 8 and 4 bits, unpacked: what quantisers and transcoders produce and the packer takes.

Both divide a row into groups of 32 consecutive weights (the reduction dimension of a product); 4 bits also
into blocks of 8 groups. The last group and the last block of a row may be short.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.errors import NonFiniteWeightError
from kernels.formats import BLOCK_GROUPS, WeightFormat
from kernels.formats import GROUP as GROUP

BLOCK = GROUP * BLOCK_GROUPS  # weights


@dataclass(frozen=True, eq=False)
class Int8Matrix:
    """w = scale · value: 8.5 bits a weight. Tensors are contiguous and on one device.

    Raises ValueError for tensors that do not belong together and NonFiniteWeightError for a scale that is no
    finite number.
    """

    values: Tensor  # int8 [rows, cols]
    scales: Tensor  # float16 [rows, ceil(cols / 32)]

    def __post_init__(self) -> None:
        rows, cols = _size(self.values)
        _check("values", self.values, torch.int8, (rows, cols), self.values.device)
        _check("scales", self.scales, torch.float16, (rows, group_count(cols)), self.values.device)
        _check_finite(self.scales, GROUP)

    @property
    def format(self) -> WeightFormat:
        """INT8."""
        return WeightFormat.INT8

    @property
    def rows(self) -> int:
        """Outputs of the product."""
        return self.values.shape[0]

    @property
    def cols(self) -> int:
        """Inputs of the product."""
        return self.values.shape[1]

    def dequantise(self) -> Tensor:
        """Return the weights, float32 [rows, cols]; the products are exact."""
        return dequantise_int8(self.values, self.scales)


@dataclass(frozen=True, eq=False)
class Int4Matrix:
    """w = (block_scale · scale) · value - block_minimum · minimum: 4.625 bits a weight.

    Tensors are contiguous and on one device. Raises ValueError for tensors that do not belong together and
    NonFiniteWeightError for a block's scale or minimum that is no finite number.
    """

    values: Tensor  # uint8 [rows, cols], 0 to 15, one a byte
    scales: Tensor  # uint8 [rows, ceil(cols / 32)]
    minimums: Tensor  # likewise
    block_scales: Tensor  # float16 [rows, ceil(cols / 256)], of either sign
    block_minimums: Tensor  # likewise

    def __post_init__(self) -> None:
        rows, cols = _size(self.values)
        _check("values", self.values, torch.uint8, (rows, cols), self.values.device)
        for name in ("scales", "minimums"):
            _check(name, getattr(self, name), torch.uint8, (rows, group_count(cols)), self.values.device)
        for name in ("block_scales", "block_minimums"):
            _check(name, getattr(self, name), torch.float16, (rows, block_count(cols)), self.values.device)
            _check_finite(getattr(self, name), BLOCK)
        largest = int(self.values.max())
        if largest > 15:
            raise ValueError(f"values of 4 bits are 0 to 15, not {largest}")

    @property
    def format(self) -> WeightFormat:
        """INT4."""
        return WeightFormat.INT4

    @property
    def rows(self) -> int:
        """Outputs of the product."""
        return self.values.shape[0]

    @property
    def cols(self) -> int:
        """Inputs of the product."""
        return self.values.shape[1]

    def dequantise(self) -> Tensor:
        """Return the weights, float32 [rows, cols]; the products are exact, the difference is rounded."""
        return dequantise_int4(
            self.values, self.scales, self.minimums, self.block_scales, self.block_minimums
        )


QuantisedMatrix = Int8Matrix | Int4Matrix


def dequantise_int8(values: Tensor, scales: Tensor) -> Tensor:
    """Return the float32 weights of an Int8Matrix's tensors."""
    return _by_groups(values).mul(scales.float()[:, :, None]).flatten(1)[:, : values.shape[1]]


def dequantise_int4(
    values: Tensor, scales: Tensor, minimums: Tensor, block_scales: Tensor, block_minimums: Tensor
) -> Tensor:
    """Return the float32 weights of an Int4Matrix's tensors."""
    block = torch.arange(scales.shape[1], device=scales.device) // BLOCK_GROUPS
    steps = block_scales.float()[:, block] * scales
    offsets = block_minimums.float()[:, block] * minimums
    weights = _by_groups(values).mul(steps[:, :, None]).sub_(offsets[:, :, None])
    return weights.flatten(1)[:, : values.shape[1]]


def group_count(cols: int) -> int:
    """Groups of 32 in a row."""
    return -(-cols // GROUP)


def block_count(cols: int) -> int:
    """Blocks of 256 in a row."""
    return -(-cols // BLOCK)


def _size(values: Tensor) -> tuple[int, int]:
    if values.dim() != 2 or 0 in values.shape:
        raise ValueError(f"values have two dimensions and are not empty, unlike {list(values.shape)}")
    return values.shape[0], values.shape[1]


def _check(
    name: str, tensor: Tensor, dtype: torch.dtype, size: tuple[int, int], device: torch.device
) -> None:
    if tensor.dtype != dtype or tensor.shape != size or not tensor.is_contiguous() or tensor.device != device:
        contiguous = "" if tensor.is_contiguous() else ", not contiguous"
        raise ValueError(
            f"{name} must be contiguous {dtype} {list(size)} on {device}, "
            f"not {tensor.dtype} {list(tensor.shape)} on {tensor.device}{contiguous}"
        )


def _check_finite(parameters: Tensor, weights: int) -> None:
    """Each parameter belongs to `weights` consecutive weights of its row."""
    finite = parameters.isfinite()
    if not finite.all():
        row, group = (~finite).nonzero()[0].tolist()
        raise NonFiniteWeightError("the matrix", row, group * weights)


def _by_groups(values: Tensor) -> Tensor:
    """[rows, cols] as [rows, groups, 32], with zeros at the end of a short group."""
    rows, cols = values.shape
    return torch.nn.functional.pad(values, (0, -cols % GROUP)).view(rows, -1, GROUP)
