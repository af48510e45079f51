"""Which pairs of token and expert a program of an expert's kernels serves, and their activations."""

# Triton takes `tuple + tuple`, not `(*tuple, item)`, and mypy knows no type for a tuple that grows.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def place_of(
    ids: tl.tensor, table: tl.tensor, first_pair: tl.tensor, EXPERTS: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """(The expert of a pair, its place): a negative place means that there is nothing to do."""
    wanted = tl.load(ids + first_pair)
    known = (wanted >= 0) & (wanted < EXPERTS)
    found = tl.load(table + tl.where(known, wanted, 0))
    return wanted, tl.where(known, found, -1)


@triton.jit
def members_of(
    ids: tl.tensor,
    wanted: tl.tensor,
    first_pair: tl.tensor,
    pairs: tl.tensor,
    MEMBERS: tl.constexpr,
    PAIRS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """(MEMBERS pairs that are served with this one, -1 for none; whether another program serves this one).

    The pairs of an expert are divided, in their order, into runs of MEMBERS; the first of a run serves it.
    """
    members = (first_pair,)
    served = first_pair < 0
    if MEMBERS > 1:
        index = tl.arange(0, PAIRS)
        same = (tl.load(ids + index, mask=index < pairs, other=-1) == wanted) & (index < pairs)
        rank = tl.cumsum(same.to(tl.int32), 0) - 1
        own_rank = tl.sum(tl.where(index == first_pair, rank, 0))
        served = own_rank % MEMBERS != 0
        for number in tl.static_range(1, MEMBERS):
            members = members + (tl.max(tl.where(same & (rank == own_rank + number), index, -1)),)
    return members, served


@triton.jit
def load_pair(
    x: tl.tensor, at: tl.tensor, first: tl.tensor, second: tl.tensor, PAIRED: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Activations `at` and `at` + 1 as float32, zero where `first` or `second` is not set.

    PAIRED: both are always there together and aligned, and one load takes them.
    """
    if PAIRED:
        if x.dtype.element_ty == tl.bfloat16:
            both = tl.load(x.to(tl.pointer_type(tl.uint32)) + (at >> 1), mask=first, other=0)
            even, odd = both << 16, both & 0xFFFF0000
        else:
            both = tl.load(x.to(tl.pointer_type(tl.uint64)) + (at >> 1), mask=first, other=0)
            even, odd = both.to(tl.uint32), (both >> 32).to(tl.uint32)
        return even.to(tl.float32, bitcast=True), odd.to(tl.float32, bitcast=True)
    even = tl.load(x + at, mask=first, other=0.0).to(tl.float32)
    odd = tl.load(x + at + 1, mask=second, other=0.0).to(tl.float32)
    return even, odd
