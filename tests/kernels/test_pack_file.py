"""Experts packed straight from a file: the same bytes as from memory, and every fault with its place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernels.errors import NonFiniteWeightError, WeightRangeError
from kernels.formats import WeightFormat
from kernels.rows import MATRICES, can_pack_files, matrix_size, pack_expert_file_rows, pack_expert_rows
from kernels.shape import TILE_ROWS, ExpertShape
from tests.kernels.experts import empty_block

pytestmark = pytest.mark.skipif(not can_pack_files(), reason="this system cannot read at a position natively")
BEFORE = 13  # bytes in the file before the weights: a position that nothing divides


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[Tensor], int]]:
    """Writes a matrix to a file; returns the file, opened."""
    handles = []

    def write(weight: Tensor) -> int:
        path = tmp_path / "weights"
        path.write_bytes(b"x" * BEFORE + weight.view(torch.uint8).numpy().tobytes())
        handles.append(os.open(path, os.O_RDONLY))
        return handles[-1]

    yield write
    for handle in handles:
        os.close(handle)


def weights(shape: ExpertShape, matrix: str) -> Tensor:
    size = matrix_size(matrix, shape)
    return torch.randn(size, generator=torch.Generator().manual_seed(3)).to(torch.bfloat16)


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("scratch_rows", [16, 40, 500])
def test_the_same_bytes_as_from_memory(opened, format: WeightFormat, matrix: str, scratch_rows: int) -> None:
    shape = ExpertShape(hidden=136, intermediate=200, format=format)
    weight = weights(shape, matrix)
    height, width = weight.shape
    file, scratch = opened(weight), torch.empty(scratch_rows, width, dtype=torch.bfloat16)
    expected, block = empty_block(shape), empty_block(shape)
    pack_expert_rows(matrix, 0, weight, expected, shape)
    for first in range(0, height, 96):
        count = min(96, height - first)
        at = BEFORE + 2 * width * first
        read = pack_expert_file_rows(matrix, first, count, file, at, scratch, block, shape)
        assert read == 2 * width * count
    assert torch.equal(block, expected)


def test_a_file_that_ends_early_is_read_to_its_end(opened) -> None:
    shape = ExpertShape(hidden=64, intermediate=96)
    weight, block = weights(shape, "w1"), empty_block(shape)
    scratch = torch.empty(16, 64, dtype=torch.bfloat16)
    file = opened(weight[:40])
    assert pack_expert_file_rows("w1", 0, 96, file, BEFORE, scratch, block, shape) == 40 * 64 * 2
    expected = empty_block(shape)
    pack_expert_rows("w1", 0, weight[:32], expected, shape)  # the pieces that were whole
    assert torch.equal(block, expected)


@pytest.mark.parametrize("format", WeightFormat)
def test_a_weight_that_is_not_finite_is_named(opened, format: WeightFormat) -> None:
    shape = ExpertShape(hidden=64, intermediate=96, format=format)
    weight = weights(shape, "w3")
    weight[70, 32] = float("nan")  # its group's first: the quantised formats name that
    scratch = torch.empty(16, 64, dtype=torch.bfloat16)
    with pytest.raises(NonFiniteWeightError) as caught:
        pack_expert_file_rows(
            "w3", 32, 64, opened(weight), BEFORE + 32 * 128, scratch, empty_block(shape), shape
        )
    assert (caught.value.matrix, caught.value.row, caught.value.col) == ("w3", 70, 32)


def test_a_weight_too_large_is_named(opened) -> None:
    shape = ExpertShape(hidden=64, intermediate=96, format=WeightFormat.INT8)
    weight = weights(shape, "w2")
    weight[5, 6] = 1e30
    scratch = torch.empty(16, 96, dtype=torch.bfloat16)
    with pytest.raises(WeightRangeError) as caught:
        pack_expert_file_rows("w2", 0, 64, opened(weight), BEFORE, scratch, empty_block(shape), shape)
    assert (caught.value.row, caught.value.col) == (5, 6)


def test_what_the_system_says_is_raised(tmp_path: Path) -> None:
    shape = ExpertShape(hidden=64, intermediate=96)
    scratch = torch.empty(16, 64, dtype=torch.bfloat16)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(IsADirectoryError):
            pack_expert_file_rows("w1", 0, 96, folder, 0, scratch, empty_block(shape), shape)
    finally:
        os.close(folder)


@pytest.mark.parametrize(
    ("first", "count", "rows", "width"),
    [
        (8, 16, 16, 64),
        (0, 24, 16, 64),
        (0, 0, 16, 64),
        (-16, 16, 16, 64),
        (0, 96, TILE_ROWS - 1, 64),
        (0, 96, 16, 63),
    ],
)
def test_refuses_what_does_not_belong_together(first: int, count: int, rows: int, width: int) -> None:
    shape = ExpertShape(hidden=64, intermediate=96)
    scratch = torch.empty(rows, width, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"rows|scratch"):
        pack_expert_file_rows("w1", first, count, 0, 0, scratch, empty_block(shape), shape)
