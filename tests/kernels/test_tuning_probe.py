"""The probe with a clock of its own: what a way takes is scripted, so nothing here depends on the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa
from kernels.formats import WeightFormat
from kernels.tuning import FormatTuning, Tuning, Way, Ways
from kernels.tuning_probe import PANEL_COUNTS, TOKEN_COUNTS, TuningResult, measure_tuning

INT4 = ExpertShape(64, 64, WeightFormat.INT4)


class ScriptedPool:
    """A pool whose calls take what `cost(way, tokens, by_panels)` says, per expert, on its own clock."""

    def __init__(self, ways: Ways, cost: Callable[[Way, int, bool], float]) -> None:
        self._ways, self._cost = ways, cost
        self.tuning = Tuning({each: FormatTuning(4) for each in WeightFormat}, 12)
        self.now = 0.0
        self.calls: list[tuple[Way, int, tuple[int, ...]]] = []

    def ways(self, weight_format: WeightFormat) -> Ways:
        return self._ways

    def run_experts(self, x: Tensor, jobs: list[ExpertJob], shape: ExpertShape, out: Tensor) -> None:
        tokens = len(jobs[0].tokens)
        assert x.shape == out.shape == (tokens, shape.hidden)
        way = self.tuning.formats[shape.format].way(tokens)
        if tokens > self._ways.few_tokens and way is Way.AS_THEY_STAND:
            way = Way.EXPANDED
        self.calls.append((way, tokens, tuple(job.block.data_ptr() for job in jobs)))
        self.now += len(jobs) * self._cost(way, tokens, tokens <= self.tuning.panel_tokens)


def measure(pool: ScriptedPool, blocks: list[Tensor], **how: Any) -> TuningResult:
    return measure_tuning(cast(CpuPool, pool), INT4, blocks, clock=lambda: pool.now, **how)


@pytest.fixture
def blocks() -> list[Tensor]:
    return list(torch.zeros(6, INT4.nbytes, dtype=torch.uint8))


def fastest_eight_bit(way: Way, tokens: int, by_panels: bool) -> float:
    base = {Way.AS_THEY_STAND: 0.9 + tokens, Way.EIGHT_BIT: 1 + tokens / 3, Way.EXPANDED: 3 + tokens / 6}[way]
    return base * 1e-3 * (1.1 if by_panels == (tokens > 8) else 1)


def test_the_chosen_ways_are_the_fastest_and_the_pool_is_left_as_it_was(blocks: list[Tensor]) -> None:
    pool = ScriptedPool(Ways(4, True), fastest_eight_bit)
    before = pool.tuning
    result = measure(pool, blocks)
    assert pool.tuning == before
    # 1 token: 1.9 against 1.33; 8 tokens: 3.67 against 4.33; 16: 6.3 against 5.7.
    assert result.chosen == FormatTuning(8, few_eight_bit=True)
    assert result.tuning.formats[WeightFormat.INT4] == result.chosen
    assert result.tuning.formats[WeightFormat.INT8] == before.formats[WeightFormat.INT8]
    assert result.tuning.panel_tokens == 8
    assert set(result.times[Way.EIGHT_BIT]) == set(result.times[Way.EXPANDED]) == set(TOKEN_COUNTS)
    assert set(result.times[Way.AS_THEY_STAND]) == {1, 2, 4}
    assert result.times[Way.EXPANDED][64] == pytest.approx(fastest_eight_bit(Way.EXPANDED, 64, False))
    assert set(result.by_panels) == set(result.by_rows) == set(PANEL_COUNTS)
    assert result.speedup > 1.1


def test_rounding_can_be_forbidden(blocks: list[Tensor]) -> None:
    pool = ScriptedPool(Ways(4, True), fastest_eight_bit)
    result = measure(pool, blocks, eight_bit=False)
    assert Way.EIGHT_BIT not in {way for way, _, _ in pool.calls}
    assert not result.chosen.eight_bit
    assert result.chosen == FormatTuning(2)  # 2.9 against 3.33; 4 tokens: 4.9 against 3.67
    assert result.speedup == 1


def test_ways_take_turns_and_so_do_experts(blocks: list[Tensor]) -> None:
    pool = ScriptedPool(Ways(4, True), fastest_eight_bit)
    measure(pool, blocks)
    first = [way for way, tokens, _ in pool.calls if tokens == 1]
    assert first[:6] == [Way.EXPANDED, Way.AS_THEY_STAND, Way.EIGHT_BIT] * 2
    pairs = [experts for _, _, experts in pool.calls]
    assert all(len(set(pair)) == 2 for pair in pairs)
    assert pairs[:3] == [tuple(b.data_ptr() for b in blocks[n : n + 2]) for n in (0, 2, 4)]
    assert pairs[3] == pairs[0]


def test_where_there_is_one_way_only_the_division_is_measured(blocks: list[Tensor]) -> None:
    pool = ScriptedPool(Ways(0, False), fastest_eight_bit)
    result = measure(pool, blocks)
    assert result.times == {}
    assert result.chosen == pool.tuning.formats[WeightFormat.INT4]
    assert {tokens for _, tokens, _ in pool.calls} == set(PANEL_COUNTS)


def test_a_slow_machine_leaves_large_counts_out(blocks: list[Tensor]) -> None:
    pool = ScriptedPool(Ways(4, False), lambda way, tokens, _: 0.2 * tokens)
    result = measure(pool, blocks)
    assert list(result.times[Way.EXPANDED]) == [1, 2]
    assert list(result.by_panels) == [4]
    assert pool.now < 25


@pytest.mark.parametrize(
    ("most", "last", "last_divided"), [(1, 1, 4), (3, 4, 4), (16, 16, 16), (17, 32, 32), (256, 64, 32)]
)
def test_counts_that_no_expert_has_are_not_measured(
    blocks: list[Tensor], most: int, last: int, last_divided: int
) -> None:
    pool, shares = ScriptedPool(Ways(4, True), fastest_eight_bit), list[float]()
    result = measure(pool, blocks, most_tokens=most, before_round=shares.append)
    assert list(result.times[Way.EXPANDED]) == [count for count in TOKEN_COUNTS if count <= last]
    assert list(result.by_panels) == [count for count in PANEL_COUNTS if count <= last_divided]
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1


def test_it_takes_two_to_three_seconds_and_says_how_far_it_is(blocks: list[Tensor]) -> None:
    pool, shares = ScriptedPool(Ways(4, True), fastest_eight_bit), list[float]()
    measure(pool, blocks, before_round=shares.append)
    assert 1.5 < pool.now < 3.5
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.9 < shares[-1] <= 1


@pytest.mark.parametrize("at", [1, 7, 100])
def test_leaving_leaves_the_pool_as_it_was(blocks: list[Tensor], at: int) -> None:
    pool = ScriptedPool(Ways(4, True), fastest_eight_bit)
    before, rounds = pool.tuning, 0

    def leave(_: float) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(pool, blocks, before_round=leave)
    assert pool.tuning == before


@pytest.mark.parametrize("weight_format", list(WeightFormat))
def test_a_real_pool(isa: Isa, weight_format: WeightFormat) -> None:
    """Real kernels and clocks, only with less patience."""
    shape = ExpertShape(64, 96, weight_format)
    buffer = torch.zeros(3 * shape.nbytes + 63, dtype=torch.uint8)
    start = -buffer.data_ptr() % 64
    blocks = list(buffer[start : start + 3 * shape.nbytes].view(3, -1))
    with CpuPool(1, isa) as pool:
        before, ways = pool.tuning, pool.ways(weight_format)
        result = measure_tuning(pool, shape, blocks, seconds=1e-3)
        assert pool.tuning == before
        pool.tuning = result.tuning
        assert pool.tuning == result.tuning
    assert ways.eight_bit == (weight_format is not WeightFormat.BF16 and isa is not Isa.PORTABLE)
    assert bool(ways.few_tokens) == (weight_format is not WeightFormat.BF16 or isa is Isa.AMX)
    assert set(result.times) == {
        *([Way.AS_THEY_STAND, Way.EXPANDED] if ways.few_tokens else []),
        *([Way.EIGHT_BIT] if ways.eight_bit else []),
    }
    assert all(seconds > 0 for times in result.times.values() for seconds in times.values())
    assert ways.eight_bit or not result.chosen.eight_bit
    others = set(WeightFormat) - {weight_format}
    assert all(result.tuning.formats[each] == before.formats[each] for each in others)
