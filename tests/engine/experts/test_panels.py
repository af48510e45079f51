"""Ranges of panels: the bytes that they name are those that unpacking and running them needs."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.experts.panels import byte_ranges, panels_at_once, unpacked_values
from kernels.cpu import ExpertShape, pack_expert, unpack_expert
from kernels.formats import WeightFormat
from kernels.shape import PANEL_ROWS


def packed(shape, seed):
    """A packed expert of normal weights."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [(shape.intermediate, shape.hidden)] * 2 + [(shape.hidden, shape.intermediate)]
    w1, w3, w2 = (torch.randn(size, generator=generator).to(torch.bfloat16) for size in sizes)
    block = torch.empty(shape.nbytes + 64, dtype=torch.uint8)
    block = block[-block.data_ptr() % 64 :][: shape.nbytes]
    pack_expert(w1, w3, w2, block, shape.format)
    return block


@settings(max_examples=40)
@given(
    st.integers(1, 300),
    st.integers(1, 600),
    st.sampled_from(WeightFormat),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.integers(0, 1000),
)
def test_the_bytes_of_some_panels_suffice_for_their_weights(hidden, intermediate, weight_format, cut, seed):
    """All other bytes are noise in the copy: the weights of the panels come back all the same."""
    shape = ExpertShape(hidden, intermediate, weight_format)
    first = min(int(min(cut) * shape.panels), shape.panels - 1)
    end = max(int(max(cut) * shape.panels), first + 1)
    block = packed(shape, seed)
    copy = torch.randint(0, 60, (shape.nbytes,), dtype=torch.uint8)  # no noise that reads as NaN
    for begin, stop in byte_ranges(shape, (first, end)):
        copy[begin:stop] = block[begin:stop]
    rows = slice(first * PANEL_ROWS, end * PANEL_ROWS)
    expected, ours = unpack_expert(block, shape), unpack_expert(copy, shape)
    assert torch.equal(ours[0][rows], expected[0][rows])
    assert torch.equal(ours[1][rows], expected[1][rows])
    assert torch.equal(ours[2][:, rows], expected[2][:, rows])


@given(st.integers(1, 300), st.integers(1, 900), st.sampled_from(WeightFormat), st.lists(st.integers(0, 30)))
def test_parts_of_an_expert_take_hardly_more_than_the_whole(hidden, intermediate, weight_format, cuts):
    """Every byte is in some part, and only rows of the side table that panels share are in two."""
    shape = ExpertShape(hidden, intermediate, weight_format)
    bounds = sorted({0, shape.panels, *(cut for cut in cuts if cut < shape.panels)})
    covered = torch.zeros(shape.nbytes, dtype=torch.int)
    for part in itertools.pairwise(bounds):
        for begin, stop in byte_ranges(shape, part):
            assert 0 <= begin < stop <= shape.nbytes
            covered[begin:stop] += 1
    assert bool((covered > 0).all())
    assert bool((covered[: shape.panels * shape.panel_nbytes] == 1).all())


def test_a_whole_expert_is_one_range():
    shape = ExpertShape(4096, 14336, WeightFormat.INT4)
    assert byte_ranges(shape) == byte_ranges(shape, (0, shape.panels)) == ((0, shape.nbytes),)


@pytest.mark.parametrize("panels", [(0, 0), (3, 2), (-1, 2), (0, 5)])
def test_what_is_no_range_is_refused(panels):
    with pytest.raises(ValueError, match="no range"):
        byte_ranges(ExpertShape(64, 128), panels)


def test_a_quarter_of_mixtrals_experts_is_unpacked_at_once():
    shape = ExpertShape(4096, 14336)
    assert panels_at_once(shape) == shape.panels / 4
    assert unpacked_values(shape) == 3 * 4096 * 14336 / 4
    small = ExpertShape(48, 40)
    assert panels_at_once(small) == small.panels
    assert unpacked_values(small) == 3 * 48 * 40
