"""Parts of experts: however ranges of panels are dealt to jobs and calls, the parts add up to the whole.

The int4 side table of w2 has an entry for eight panels, so ranges that begin or end between multiples of
eight are the ones to get wrong.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa, available_isas, default_isa
from kernels.formats import WeightFormat
from kernels.tuning import Way
from tests.kernels.experts import (
    BY_PANELS,
    BY_ROWS,
    Activations,
    Expert,
    errors,
    exact,
    make_expert,
    make_rows,
    precision,
    run,
    tuning,
    ways,
)

LEVELS = [isa for isa in available_isas() if isa <= default_isa()]
TOKENS = 37
# 19 panels, the last one short, and k tiles that are no multiple of eight either.
EXPERTS = {format: make_expert(ExpertShape(300, 597, format)) for format in WeightFormat}
PANELS = 19
X = make_rows(TOKENS, 300)


@pytest.fixture(scope="module")
def pools():
    pools = {(isa, threads): CpuPool(threads, isa) for isa in LEVELS for threads in (1, 3)}
    yield pools
    for pool in pools.values():
        pool.close()


def part(expert: Expert, first: int, end: int) -> Expert:
    """The neurons of some panels alone, in float64."""
    w1, w3, w2 = expert.weights
    neurons = slice(32 * first, 32 * end)
    return Expert(expert.shape, expert.block, (w1[neurons], w3[neurons], w2[:, neurons]))


def tolerance(isa: Isa, format: WeightFormat, way: Way, count: int) -> float:
    # A neuron may be rounded to the other of two numbers next to it: see test_expert_ways.
    how = precision(isa, format, way, count)
    return 1e-5 if how.activations is Activations.FLOAT else 5e-3


@st.composite
def divisions(draw: st.DrawFn) -> list[list[tuple[int, int]]]:
    """Ranges that are all panels together, some of them empty, shuffled and dealt to a few calls."""
    cuts = sorted(draw(st.lists(st.integers(0, PANELS), max_size=7)))
    ranges = list(zip([0, *cuts], [*cuts, PANELS], strict=True))
    calls: list[list[tuple[int, int]]] = [[] for _ in range(draw(st.integers(1, 3)))]
    for each in draw(st.permutations(ranges)):
        calls[draw(st.integers(0, len(calls) - 1))].append(each)
    return calls


@pytest.mark.parametrize(
    ("format", "way"), [(format, way) for format in WeightFormat for way in ways(format)]
)
@given(
    division=divisions(),
    isa=st.sampled_from(LEVELS),
    threads=st.sampled_from([1, 3]),
    count=st.sampled_from([1, 2, 4, 5, 13, TOKENS]),
    panel_tokens=st.sampled_from([BY_PANELS, BY_ROWS]),
)
@settings(deadline=None, max_examples=40)
def test_any_division_adds_up_to_the_whole(
    pools, format, way, division, isa, threads, count, panel_tokens
) -> None:
    expert, x = EXPERTS[format], X[:count]
    pool = pools[isa, threads]
    pool.tuning = tuning(way, panel_tokens)
    whole = run(pool, expert, x).double()
    out = torch.zeros(count, 300)
    for ranges in division:
        pool.run_experts(x, [expert.job(count, panels) for panels in ranges], expert.shape, out)
    # The same panels with the same inputs are rounded alike; only the order of sums is another.
    assert float(errors(out, whole).max()) <= 1e-5


@pytest.mark.parametrize(
    ("format", "way"), [(format, way) for format in WeightFormat for way in ways(format)]
)
@pytest.mark.parametrize("panel_tokens", [BY_PANELS, BY_ROWS])
def test_a_part_is_its_own_neurons(
    isa: Isa, pools, format: WeightFormat, way: Way, panel_tokens: int
) -> None:
    """Not only the sum is right: each range, also from within eight panels, gives what its neurons do."""
    expert = EXPERTS[format]
    pool = pools[isa, 3]
    pool.tuning = tuning(way, panel_tokens)
    for first, end in [(0, 1), (3, 4), (7, 9), (1, 8), (5, 17), (8, 19), (11, 12), (15, 19), (18, 19)]:
        for count in (3, 6, TOKENS):
            reference = exact(part(expert, first, end), X[:count], precision(isa, format, way, count))
            y = run(pool, expert, X[:count], (first, end))
            assert float(errors(y, reference).max()) <= tolerance(isa, format, way, count), (
                first,
                end,
                count,
            )


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("panel_tokens", [BY_PANELS, BY_ROWS])
def test_parts_of_several_experts_with_tokens_of_their_own(
    isa: Isa, pools, format: WeightFormat, panel_tokens: int
) -> None:
    """Ranges, tokens, and routing weights differ from job to job of one call, and rows occur again."""
    experts = [EXPERTS[format], make_expert(EXPERTS[format].shape, seed=1)]
    pool = pools[isa, 3]
    way = Way.AS_THEY_STAND
    pool.tuning = tuning(way, panel_tokens)
    g = torch.Generator().manual_seed(5)
    out = torch.zeros(TOKENS, 300)
    reference = torch.zeros(TOKENS, 300, dtype=torch.float64)
    jobs = []
    for number, panels, count in [
        (0, (2, 11), 3),
        (1, (9, 19), 50),
        (0, (11, 13), 1),
        (1, (4, 4), 9),
        (1, (0, 7), 20),
    ]:
        tokens = torch.randint(0, TOKENS, (count,), generator=g, dtype=torch.int32)
        weights = torch.rand(count, generator=g)
        jobs.append(ExpertJob(experts[number].block, tokens, weights, panels))
        y = exact(part(experts[number], *panels), X, precision(isa, format, way, count))
        reference.index_add_(0, tokens.long(), weights.double()[:, None] * y[tokens.long()])
    pool.run_experts(X, jobs, experts[0].shape, out)
    chosen = torch.cat([job.tokens for job in jobs if job.panels != (4, 4)]).unique().long()
    assert float(errors(out[chosen], reference[chosen]).max()) <= 5e-3
    assert float(errors(out[chosen], reference[chosen]).median()) <= 1e-3


def test_empty_ranges_add_nothing(isa: Isa, pools) -> None:
    expert = EXPERTS[WeightFormat.INT4]
    before = make_rows(TOKENS, 300, seed=9)
    out = before.clone()
    jobs = [expert.job(TOKENS, (at, at)) for at in range(PANELS + 1)]
    pools[isa, 3].run_experts(X, jobs, expert.shape, out)
    assert torch.equal(out, before)


@pytest.mark.parametrize("panels", [(0, PANELS + 1), (-1, 3), (5, 4), (PANELS + 1, PANELS + 1), (-2, -1)])
@pytest.mark.parametrize("format", WeightFormat)
def test_panels_outside_are_refused(pools, format: WeightFormat, panels: tuple[int, int]) -> None:
    expert = EXPERTS[format]
    out = torch.zeros(TOKENS, 300)
    good = expert.job(TOKENS)
    with pytest.raises(ValueError, match=f"an expert of {PANELS} panels has no panels"):
        pools[LEVELS[0], 1].run_experts(X, [good, expert.job(TOKENS, panels)], expert.shape, out)
    assert not out.any()


@pytest.mark.parametrize("wrong", list(WeightFormat))
def test_a_block_of_another_format_is_refused(pools, wrong: WeightFormat) -> None:
    """By its size, which differs for every format."""
    for format, expert in EXPERTS.items():
        shape = ExpertShape(300, 597, wrong)
        if format is not wrong:
            out: Tensor = torch.zeros(1, 300)
            with pytest.raises(ValueError, match="a packed expert is contiguous uint8"):
                pools[LEVELS[0], 1].run_experts(X[:1], [expert.job(1)], shape, out)
            assert not out.any()
