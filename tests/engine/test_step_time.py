"""Expected decode steps: known mixtures, and what must hold for every machine."""

from __future__ import annotations

from itertools import combinations
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.latency import Curve, LatencyModel
from engine.options import POLICIES
from engine.step_time import decode_step_seconds, missing_chances
from tests.engine.costs import SERVER

SHAPE = (32, 8)
EVEN = np.full(SHAPE, 0.25)
NOTHING = np.zeros(SHAPE, dtype=np.bool_)


def model(transfer: float = 6.4e-3) -> LatencyModel:
    return LatencyModel(Curve.fit([(1, 3.3e-3)]), 4e-3, Curve.fit([(1, 0.12e-3)]), transfer)


def test_a_decode_step_adds_up() -> None:
    alone = LatencyModel(Curve.fit([(1, 3.3e-3)]), 4e-3)
    assert decode_step_seconds(alone, NOTHING, EVEN) == pytest.approx(4e-3 + 64 * 3.3e-3)
    assert decode_step_seconds(model(), ~NOTHING, EVEN) == pytest.approx(4e-3 + 64 * 0.12e-3)
    assert decode_step_seconds(model(), NOTHING, EVEN, "cpu") == pytest.approx(4e-3 + 64 * 3.3e-3)
    # Both are copied one after the other, and the first is computed meanwhile.
    streamed = decode_step_seconds(model(), NOTHING, EVEN, "stream")
    assert streamed == pytest.approx(4e-3 + 32 * (2 * 6.4e-3 + 0.12e-3))


def test_missing_experts_are_counted_as_sets_of_them_are_drawn() -> None:
    """Two of eight, three of which are resident: hypergeometric; the CPU runs beside the GPU."""
    chances = missing_chances(EVEN[0], np.arange(8) < 3, 2)
    assert chances == pytest.approx([comb(5, missing) * comb(3, 2 - missing) / 28 for missing in range(3)])
    resident = np.tile(np.arange(8) < 3, (32, 1))
    layer = chances @ [2 * 0.12e-3, 3.3e-3, 2 * 3.3e-3]
    assert decode_step_seconds(model(), resident, EVEN, "cpu") == pytest.approx(4e-3 + 32 * layer)


@given(
    st.lists(st.floats(0.05, 0.9), min_size=4, max_size=7),
    st.lists(st.booleans(), min_size=7, max_size=7),
    st.integers(1, 3),
)
def test_chances_are_those_of_all_sets(chance: list[float], flags: list[bool], top_k: int) -> None:
    resident = np.array(flags[: len(chance)])
    weights = [0.0] * (top_k + 1)
    for chosen in combinations(range(len(chance)), top_k):
        missing = sum(not resident[expert] for expert in chosen)
        weights[missing] += prod(chance[expert] / (1 - chance[expert]) for expert in chosen)
    expected = np.array(weights) / sum(weights)
    assert missing_chances(np.array(chance), resident, top_k) == pytest.approx(expected)


def test_together_is_faster_than_either() -> None:
    seconds = {policy: decode_step_seconds(SERVER, NOTHING, EVEN, policy) for policy in POLICIES}
    # The measured machine needed 219 ms for its experts with the CPU alone and 175 at best with both.
    assert (seconds["cpu"] - 4e-3) / (seconds["makespan"] - 4e-3) == pytest.approx(219 / 175, rel=0.05)
    assert seconds["paper"] == seconds["cpu"] < seconds["stream"]


@given(
    resident=st.lists(st.booleans(), min_size=16, max_size=16),
    extra=st.integers(0, 15),
    policy=st.sampled_from(POLICIES),
    transfer=st.floats(2e-4, 1e-1),
)
def test_another_resident_expert_never_slows_decode(
    resident: list[bool], extra: int, policy: str, transfer: float
) -> None:
    before = np.asarray(resident).reshape(2, 8)
    after = before.copy()
    after.ravel()[extra] = True
    slow, fast = (decode_step_seconds(model(transfer), held, EVEN[:2], policy) for held in (before, after))
    assert fast <= slow + 1e-12


@given(transfer=st.floats(1e-4, 1e-1), resident=st.lists(st.booleans(), min_size=16, max_size=16))
def test_makespan_is_never_slower_than_the_others(transfer: float, resident: list[bool]) -> None:
    held, latency = np.asarray(resident).reshape(2, 8), model(transfer)
    times = {policy: decode_step_seconds(latency, held, EVEN[:2], policy) for policy in POLICIES}
    assert times["makespan"] <= min(times.values()) * (1 + 1e-8)
