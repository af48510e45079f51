"""Matrices of 8 and 4 bits as tensors: what they are worth in float64, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernels.errors import NonFiniteWeightError
from kernels.formats import WeightFormat
from kernels.quantised import Int4Matrix, Int8Matrix

sizes = st.integers(min_value=1, max_value=600)
rows_counts = st.integers(min_value=1, max_value=20)
seeds = st.integers(min_value=0, max_value=2**31)


def random_int8(rows: int, cols: int, seed: int) -> Int8Matrix:
    g = torch.Generator().manual_seed(seed)
    values = torch.randint(-128, 128, (rows, cols), generator=g, dtype=torch.int8)
    return Int8Matrix(values, torch.randn(rows, -(-cols // 32), generator=g).half())


def random_int4(rows: int, cols: int, seed: int) -> Int4Matrix:
    g = torch.Generator().manual_seed(seed)

    def integers(end: int, count: int) -> Tensor:
        return torch.randint(0, end, (rows, count), generator=g, dtype=torch.uint8)

    groups, blocks = -(-cols // 32), -(-cols // 256)
    return Int4Matrix(
        values=integers(16, cols),
        scales=integers(256, groups),
        minimums=integers(256, groups),
        block_scales=torch.randn(rows, blocks, generator=g).half(),
        block_minimums=torch.randn(rows, blocks, generator=g).half(),
    )


@given(rows=rows_counts, cols=sizes, seed=seeds)
@settings(deadline=None, max_examples=40)
def test_int8_weights_are_exact_products(rows: int, cols: int, seed: int) -> None:
    m = random_int8(rows, cols, seed)
    assert (m.format, m.rows, m.cols) == (WeightFormat.INT8, rows, cols)
    group = torch.arange(cols) // 32
    exact = m.values.double() * m.scales.double()[:, group]
    assert m.dequantise().dtype == torch.float32
    assert torch.equal(m.dequantise().double(), exact)


@given(rows=rows_counts, cols=sizes, seed=seeds)
@settings(deadline=None, max_examples=40)
def test_int4_weights_are_rounded_once(rows: int, cols: int, seed: int) -> None:
    m = random_int4(rows, cols, seed)
    assert (m.format, m.rows, m.cols) == (WeightFormat.INT4, rows, cols)
    group, block = torch.arange(cols) // 32, torch.arange(cols) // 256
    scales = m.block_scales.double()[:, block] * m.scales.double()[:, group]
    minimums = m.block_minimums.double()[:, block] * m.minimums.double()[:, group]
    exact = scales * m.values.double() - minimums
    assert m.dequantise().dtype == torch.float32
    assert torch.equal(m.dequantise(), exact.float())


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("values", torch.zeros(2, 40, dtype=torch.uint8)),
        ("values", torch.zeros(40, dtype=torch.int8)),
        ("values", torch.zeros(2, 0, dtype=torch.int8)),
        ("values", torch.zeros(40, 2, dtype=torch.int8).T),
        ("scales", torch.zeros(2, 1, dtype=torch.float16)),
        ("scales", torch.zeros(2, 2)),
    ],
)
def test_int8_refuses_tensors_that_do_not_belong_together(field: str, wrong: Tensor) -> None:
    with pytest.raises(ValueError, match=field):
        dataclasses.replace(random_int8(2, 40, 0), **{field: wrong})


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("values", torch.zeros(2, 300, dtype=torch.int8)),
        ("values", torch.full((2, 300), 16, dtype=torch.uint8)),
        ("scales", torch.zeros(2, 9, dtype=torch.uint8)),
        ("minimums", torch.zeros(2, 10, dtype=torch.int8)),
        ("block_scales", torch.zeros(2, 3, dtype=torch.float16)),
        ("block_minimums", torch.zeros(2, 2, dtype=torch.bfloat16)),
    ],
)
def test_int4_refuses_tensors_that_do_not_belong_together(field: str, wrong: Tensor) -> None:
    with pytest.raises(ValueError, match=field):
        dataclasses.replace(random_int4(2, 300, 0), **{field: wrong})


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_parameters_are_finite(bad: float) -> None:
    scales = torch.ones(3, 4, dtype=torch.float16)
    scales[1, 2] = bad
    with pytest.raises(NonFiniteWeightError) as caught:
        dataclasses.replace(random_int8(3, 100, 0), scales=scales)
    assert (caught.value.row, caught.value.col) == (1, 64)
    with pytest.raises(NonFiniteWeightError) as caught:
        dataclasses.replace(random_int4(3, 1000, 0), block_minimums=scales)
    assert (caught.value.row, caught.value.col) == (1, 512)
