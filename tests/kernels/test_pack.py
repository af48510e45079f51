"""Packing experts of 8 and 4 bits: every byte where kernels/layout.py says, and all of it back again."""

from __future__ import annotations

import dataclasses
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernels import rows
from kernels.cpu import ExpertShape, PackedLinear, pack_expert, unpack_expert
from kernels.errors import NonFiniteWeightError, WeightRangeError
from kernels.formats import WeightFormat
from kernels.isa import Isa, available_isas
from kernels.pack import pack_quantised, quantise
from kernels.quantised import Int4Matrix, Int8Matrix, QuantisedMatrix
from kernels.rows import pack_expert_rows
from tests.kernels.experts import empty_block, unpack_quantised

QUANTISED = (WeightFormat.INT8, WeightFormat.INT4)
MATRICES = ("w1", "w3", "w2")
sizes = st.one_of(st.integers(1, 150), st.sampled_from([255, 256, 257, 300, 520]))
seeds = st.integers(0, 2**31)


def matrix_sizes(hidden: int, intermediate: int) -> tuple[tuple[int, int], ...]:
    return ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))


def random_matrix(format: WeightFormat, rows: int, cols: int, g: torch.Generator) -> QuantisedMatrix:
    """Every value and parameter that the format has."""
    groups, blocks = -(-cols // 32), -(-cols // 256)
    if format is WeightFormat.INT8:
        values = torch.randint(-128, 128, (rows, cols), generator=g, dtype=torch.int8)
        return Int8Matrix(values, torch.randn(rows, groups, generator=g).half())
    parts = [(16, cols), (256, groups), (256, groups)]
    values, scales, minimums = (
        torch.randint(0, end, (rows, count), generator=g, dtype=torch.uint8) for end, count in parts
    )
    d, e = (torch.randn(rows, blocks, generator=g).half() for _ in range(2))
    return Int4Matrix(values, scales, minimums, d, e)


def random_expert(shape: ExpertShape, seed: int) -> list[QuantisedMatrix]:
    g = torch.Generator().manual_seed(seed)
    return [random_matrix(shape.format, *size, g) for size in matrix_sizes(shape.hidden, shape.intermediate)]


def random_weights(hidden: int, intermediate: int) -> list[Tensor]:
    g = torch.Generator().manual_seed(0)
    return [torch.randn(*size, generator=g).bfloat16() for size in matrix_sizes(hidden, intermediate)]


def same(a: QuantisedMatrix, b: QuantisedMatrix) -> bool:
    return type(a) is type(b) and all(torch.equal(tensor, vars(b)[name]) for name, tensor in vars(a).items())


class SlowReader:
    """Reads a block weight by weight, as its description says: for comparison, nothing here is shared."""

    def __init__(self, block: Tensor, hidden: int, intermediate: int, format: WeightFormat) -> None:
        self.data = bytes(block.tolist())
        self.read = bytearray(len(self.data))  # which bytes were looked at
        self.int4 = format is WeightFormat.INT4
        self.tile = 256 if self.int4 else 512
        self.k, self.panels = -(-hidden // 32), -(-intermediate // 32)
        self.panel_bytes = 6 * self.k * (self.tile + 32)
        self.end_of_panels = self.panels * self.panel_bytes
        self.columns = -(-self.k // 8)

    def _byte(self, at: int) -> int:
        self.read[at] = 1
        return self.data[at]

    def _half(self, at: int) -> float:
        number: float
        (number,) = struct.unpack("<e", bytes([self._byte(at), self._byte(at + 1)]))
        return number

    def weight(self, matrix: str, row: int, col: int) -> tuple[float, ...]:
        """(value, scale) or (value, scale, minimum, block's scale, block's minimum)."""
        lane = row % 16
        if matrix == "w2":
            panel, tile = col // 32, 4 * self.k + row // 16
            entry = self.panels * 4 * self.columns + (panel // 8) * 2 * self.k + row // 16
        else:
            panel = row // 32
            row_tile = (2 if matrix == "w3" else 0) + row % 32 // 16
            tile = row_tile * self.k + col // 32
            entry = (panel * 4 + row_tile) * self.columns + col // 256
        values = panel * self.panel_bytes + tile * self.tile
        group = panel * self.panel_bytes + 6 * self.k * self.tile + tile * 32
        i = col % 32
        if not self.int4:
            byte = self._byte(values + (i // 4) * 64 + lane * 4 + i % 4)
            return (byte - 256 if byte > 127 else byte, self._half(group + 2 * lane))
        word = values + (i // 8) * 64 + lane * 4
        bits = int.from_bytes(bytes(self._byte(word + b) for b in range(4)), "little")
        value = bits >> (16 * (i % 2) + 4 * (i % 8 // 2)) & 15
        side = self.end_of_panels + entry * 64
        return (
            value,
            self._byte(group + lane),
            self._byte(group + 16 + lane),
            self._half(side + 2 * lane),
            self._half(side + 32 + 2 * lane),
        )


def parameters(m: QuantisedMatrix, row: int, col: int) -> tuple[float, ...]:
    if isinstance(m, Int8Matrix):
        return (m.values[row, col].item(), m.scales[row, col // 32].item())
    return (
        m.values[row, col].item(),
        m.scales[row, col // 32].item(),
        m.minimums[row, col // 32].item(),
        m.block_scales[row, col // 256].item(),
        m.block_minimums[row, col // 256].item(),
    )


@pytest.mark.parametrize("format", QUANTISED)
@pytest.mark.parametrize(("hidden", "intermediate"), [(1, 1), (40, 70), (33, 290), (290, 33), (64, 32)])
def test_every_byte_is_where_the_description_says(
    format: WeightFormat, hidden: int, intermediate: int
) -> None:
    shape = ExpertShape(hidden, intermediate, format)
    matrices, block = random_expert(shape, 3), empty_block(shape)
    pack_quantised(*matrices, block)
    reader = SlowReader(block, hidden, intermediate, format)
    assert len(reader.data) == reader.end_of_panels + (
        64 * (4 * reader.panels * reader.columns + 2 * reader.k * -(-reader.panels // 8))
        if reader.int4
        else 0
    )
    for name, m in zip(MATRICES, matrices, strict=True):
        for row in range(m.rows):
            for col in range(m.cols):
                assert reader.weight(name, row, col) == parameters(m, row, col), (name, row, col)
    padding = [byte for byte, seen in zip(reader.data, reader.read, strict=True) if not seen]
    assert not any(padding)
    if (hidden, intermediate) == (64, 32):  # 32 rows and columns in all: only the side table is padded
        assert all(reader.read[: reader.end_of_panels])


@pytest.mark.parametrize("format", QUANTISED)
@given(hidden=sizes, intermediate=sizes, seed=seeds)
@settings(deadline=None, max_examples=40)
def test_quantised_experts_survive_packing(
    format: WeightFormat, hidden: int, intermediate: int, seed: int
) -> None:
    shape = ExpertShape(hidden, intermediate, format)
    matrices, block = random_expert(shape, seed), empty_block(shape)
    pack_quantised(*matrices, block)
    unpacked = unpack_quantised(block, shape)
    assert all(same(a, b) for a, b in zip(matrices, unpacked, strict=True))
    plain = unpack_expert(block, shape)
    for a, b in zip(matrices, plain, strict=True):
        assert b.dtype == torch.bfloat16
        assert torch.equal(a.dequantise().bfloat16(), b)


@pytest.mark.parametrize("format", QUANTISED)
def test_large_experts_are_dequantised_in_parts(
    format: WeightFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = ExpertShape(300, 500, format)
    matrices, block = random_expert(shape, 0), empty_block(shape)
    pack_quantised(*matrices, block)
    for at_once in (1, 32 * 300, 100_000):
        monkeypatch.setattr("kernels.unpack._AT_ONCE", at_once)
        for a, b in zip(matrices, unpack_expert(block, shape), strict=True):
            assert torch.equal(a.dequantise().bfloat16(), b)


@pytest.mark.parametrize("format", QUANTISED)
@given(hidden=sizes, intermediate=sizes)
@settings(deadline=None, max_examples=15)
def test_quantising_while_packing_is_the_same(format: WeightFormat, hidden: int, intermediate: int) -> None:
    shape = ExpertShape(hidden, intermediate, format)
    weights = random_weights(hidden, intermediate)
    at_once, whole, in_rows = (empty_block(shape) for _ in range(3))
    pack_quantised(*(quantise(weight, format) for weight in weights), whole)
    pack_expert(*weights, at_once, format)
    for name, weight in zip(MATRICES, weights, strict=True):
        for first in reversed(range(0, len(weight), 48)):
            pack_expert_rows(name, first, weight[first : first + 48], in_rows, shape)
    assert torch.equal(at_once, whole)
    assert torch.equal(in_rows, whole)


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("matrix", range(3))
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_named(format: WeightFormat, matrix: int, bad: float) -> None:
    hidden, intermediate = 75, 301
    weights = random_weights(hidden, intermediate)
    rows, cols = weights[matrix].shape
    block = empty_block(ExpertShape(hidden, intermediate, format))
    for row, col in ((rows - 1, cols - 1), (33, 64), (33, 3), (0, 0)):  # each before the ones already there
        weights[matrix][row, col] = bad
        with pytest.raises(
            NonFiniteWeightError, match=f"{MATRICES[matrix]} has .*row {row}, column {col}\\."
        ) as caught:
            pack_expert(*weights, block, format)
        error = caught.value
        assert (error.matrix, error.row, error.col) == (MATRICES[matrix], row, col)
        assert isinstance(error, ValueError)


def test_linear_weights_that_are_not_finite_are_found() -> None:
    weight = torch.zeros(40, 70).bfloat16()
    weight[35, 69] = float("nan")
    with pytest.raises(NonFiniteWeightError, match="row 35, column 69"):
        PackedLinear.from_weight(weight)


def test_the_largest_bf16_is_finite() -> None:
    weights = [torch.full((40, 40), torch.finfo(torch.bfloat16).max).bfloat16() for _ in range(3)]
    shape = ExpertShape(40, 40)
    block = empty_block(shape)
    pack_expert(*weights, block)
    assert all(torch.equal(a, b) for a, b in zip(weights, unpack_expert(block, shape), strict=True))
    for format in QUANTISED:
        with pytest.raises(WeightRangeError, match=r"w1 has a weight too large .*row 0, column 0"):
            pack_expert(*weights, empty_block(ExpertShape(40, 40, format)), format)


@pytest.mark.parametrize("isa", available_isas())
@settings(max_examples=25)
@given(hidden=sizes, intermediate=sizes, seed=seeds)
def test_every_level_packs_the_same_and_sees_what_is_not_finite(
    isa: Isa, hidden: int, intermediate: int, seed: int
) -> None:
    shape = ExpertShape(hidden, intermediate)
    g = torch.Generator().manual_seed(seed)
    weights = [
        torch.randint(0, 0x7F80, size, generator=g, dtype=torch.int16).view(torch.bfloat16)
        for size in matrix_sizes(hidden, intermediate)
    ]
    block = empty_block(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "default_isa", lambda: isa)
        for matrix, weight in zip(MATRICES, weights, strict=True):
            pack_expert_rows(matrix, 0, weight, block, shape)
        assert all(torch.equal(a, b) for a, b in zip(weights, unpack_expert(block, shape), strict=True))
        row, col = (int(torch.randint(0, size, (), generator=g)) for size in weights[2].shape)
        weights[2][row, col] = float("-inf")
        with pytest.raises(NonFiniteWeightError) as caught:
            pack_expert_rows("w2", 0, weights[2], block, shape)
    assert (caught.value.row, caught.value.col) == (row, col)


@pytest.mark.parametrize("wrong", ["format", "size", "block", "w2"])
def test_refuses_matrices_that_do_not_belong_together(wrong: str) -> None:
    shape = ExpertShape(40, 70, WeightFormat.INT8)
    w1, w3, w2 = random_expert(shape, 0)
    block = empty_block(shape)
    other = random_expert(dataclasses.replace(shape, format=WeightFormat.INT4), 0)
    if wrong == "format":
        w3 = other[1]
    elif wrong == "size":
        w3 = w2
    elif wrong == "block":
        block = empty_block(dataclasses.replace(shape, format=WeightFormat.INT4))
    else:
        w2 = w1
    with pytest.raises(ValueError, match=r"must be|a packed expert is"):
        pack_quantised(w1, w3, w2, block)


@pytest.mark.parametrize("format", WeightFormat)
def test_some_panels_are_their_rows_and_columns(format: WeightFormat) -> None:
    """19 panels: two and a half blocks of w2's groups, the last panel short."""
    shape = ExpertShape(300, 597, format)
    block = empty_block(shape)
    pack_expert(*random_weights(300, 597), block, format)
    w1, w3, w2 = unpack_expert(block, shape)
    for first, end in [(0, 19), (3, 4), (7, 9), (1, 8), (5, 17), (8, 19), (18, 19), (6, 6), (19, 19)]:
        neurons = slice(32 * first, 32 * end)
        parts = unpack_expert(block, shape, (first, end))
        for part, whole in zip(parts, (w1[neurons], w3[neurons], w2[:, neurons]), strict=True):
            assert torch.equal(part, whole)
            assert part.is_contiguous()
    for panels in [(0, 20), (-1, 3), (5, 4)]:
        with pytest.raises(ValueError, match="an expert of 19 panels has no panels"):
            unpack_expert(block, shape, panels)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
@pytest.mark.parametrize("format", WeightFormat)
def test_unpacking_on_a_gpu(format: WeightFormat) -> None:
    shape = ExpertShape(300, 500, format)
    block = empty_block(shape)
    pack_expert(*random_weights(300, 500), block, format)
    for a, b in zip(unpack_expert(block, shape), unpack_expert(block.cuda(), shape), strict=True):
        assert b.is_cuda
        assert torch.equal(a, b.cpu())
