"""Packing and unpacking bf16: exact for every size and every finite bit pattern."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernels.cpu import ExpertShape, PackedLinear, pack_expert, unpack_expert

sizes = st.integers(min_value=1, max_value=150)
seeds = st.integers(min_value=0, max_value=2**31)


def random_bits(rows: int, cols: int, g: torch.Generator) -> Tensor:
    """All finite weights, denormals and both zeros included."""
    bits = torch.randint(-(2**15), 2**15, (rows, cols), generator=g, dtype=torch.int16).view(torch.bfloat16)
    return torch.where(bits.isfinite(), bits, bits.view(torch.int16).bitwise_and(0x7F).view(torch.bfloat16))


def same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.view(torch.int16), b.view(torch.int16))


def empty_block(shape: ExpertShape) -> Tensor:
    buffer = torch.full((shape.nbytes + 63,), 0xA5, dtype=torch.uint8)
    start = -buffer.data_ptr() % 64
    return buffer[start : start + shape.nbytes]


@given(hidden=sizes, intermediate=sizes, seed=seeds)
@settings(deadline=None, max_examples=60)
def test_experts_survive_packing(hidden: int, intermediate: int, seed: int) -> None:
    shape = ExpertShape(hidden, intermediate)
    g = torch.Generator().manual_seed(seed)
    w1, w3 = random_bits(intermediate, hidden, g), random_bits(intermediate, hidden, g)
    w2 = random_bits(hidden, intermediate, g)
    block = empty_block(shape)
    pack_expert(w1, w3, w2, block)
    assert all(same_bits(a, b) for a, b in zip((w1, w3, w2), unpack_expert(block, shape), strict=True))


@given(rows=sizes, cols=sizes, seed=seeds)
@settings(deadline=None, max_examples=60)
def test_linear_weights_survive_packing(rows: int, cols: int, seed: int) -> None:
    weight = random_bits(rows, cols, torch.Generator().manual_seed(seed))
    packed = PackedLinear.from_weight(weight)
    assert packed.data.shape == (packed.nbytes,)
    assert same_bits(packed.unpack(), weight)


def test_layout_is_the_documented_one() -> None:
    """The place of single weights in the block, computed by hand from the description."""
    shape = ExpertShape(hidden=40, intermediate=70)  # 2 tiles along hidden, 3 panels
    w1, w3, w2 = torch.zeros(70, 40), torch.zeros(70, 40), torch.zeros(40, 70)
    w1[33, 35] = 1.0  # panel 1, row tile 0, row 1, second k tile, pair 1, odd
    w3[63, 2] = 2.0  # panel 1, row tile 1, row 15, first k tile, pair 1, even
    w2[17, 69] = 3.0  # panel 2, row tile 1, row 1, column 5: pair 2, odd
    block = empty_block(shape)
    pack_expert(w1.bfloat16(), w3.bfloat16(), w2.bfloat16(), block)
    values = block.view(torch.bfloat16)
    assert values.count_nonzero() == 3  # and padding is zero
    tile, panel = 512, 12 * 512  # in values: a panel has 2 * 2 tiles each of w1, w3 and w2
    assert values[panel + 0 * 2 * tile + 1 * tile + (1 * 16 + 1) * 2 + 1] == 1.0
    assert values[panel + 4 * tile + 1 * 2 * tile + 0 * tile + (1 * 16 + 15) * 2 + 0] == 2.0
    assert values[2 * panel + 8 * tile + 1 * tile + (2 * 16 + 1) * 2 + 1] == 3.0


def test_sizes() -> None:
    mixtral = ExpertShape(4096, 14336)
    assert (mixtral.panels, mixtral.nbytes) == (448, 3 * 4096 * 14336 * 2)
    assert ExpertShape(1, 1).nbytes == 6 * 1024
    with pytest.raises(ValueError, match="cannot be"):
        ExpertShape(0, 4)


@pytest.mark.parametrize("wrong", ["dtype", "size", "stride", "alignment", "weight", "down"])
def test_refuses_what_does_not_fit(wrong: str) -> None:
    shape = ExpertShape(32, 32)
    block, w1 = empty_block(shape), torch.zeros(32, 32).bfloat16()
    w3, w2 = w1.clone(), w1.clone()
    if wrong == "dtype":
        block = block.view(torch.int8)
    elif wrong == "size":
        block = block[:-1]
    elif wrong == "stride":
        block = torch.empty(2 * shape.nbytes, dtype=torch.uint8)[::2]
    elif wrong == "alignment":
        block = torch.empty(shape.nbytes + 128, dtype=torch.uint8)
        start = -block.data_ptr() % 64 + 1
        block = block[start : start + shape.nbytes]
    elif wrong == "weight":
        w3 = w3.float()
    else:
        w2 = w2[:31]
    with pytest.raises(ValueError, match="contiguous"):
        pack_expert(w1, w3, w2, block)


def test_unpacking_refuses_a_block_of_another_size() -> None:
    with pytest.raises(ValueError, match="packed expert"):
        unpack_expert(torch.zeros(100, dtype=torch.uint8), ExpertShape(32, 32))
