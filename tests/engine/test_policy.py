"""Policies: the rule of the paper's Algorithm 1, and what holds for every policy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Place
from engine.options import POLICIES
from engine.policy import IDLE, decide
from tests.engine.costs import SERVER, SimpleCosts, simple_costs

PANELS = 7
Step = list[tuple[bool, int]]
steps = st.lists(st.tuples(st.booleans(), st.integers(0, 50)), min_size=1, max_size=16)


def arrays(step: Step) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    resident, tokens = zip(*step, strict=True)
    return np.array(resident), np.array(tokens, dtype=np.int64)


@given(st.sampled_from(POLICIES), steps, simple_costs | st.none())
def test_every_policy(policy: str, step: Step, costs: SimpleCosts | None) -> None:
    resident, tokens = arrays(step)
    plan = decide(policy, resident, tokens, costs, PANELS)
    expected_panels = {Place.CPU: {PANELS}, Place.SPLIT: set(range(1, PANELS))}
    for expert, place in enumerate(plan.places.tolist()):
        assert (place == IDLE) == (tokens[expert] == 0)
        if tokens[expert]:
            assert (place == Place.GPU) == resident[expert]
        assert plan.cpu_panels[expert] in expected_panels.get(place, {0})
    used = set(plan.places[(tokens > 0) & ~resident].tolist())
    whole = {Place.CPU, Place.STREAMED}
    allowed = {"cpu": {Place.CPU}, "stream": {Place.STREAMED}, "makespan": whole | {Place.SPLIT}}
    assert used <= allowed.get(policy, whole)
    assert (plan.places == Place.SPLIT).sum() <= 1
    copied = np.flatnonzero((plan.places == Place.STREAMED) | (plan.places == Place.SPLIT))
    assert sorted(plan.copies) == copied.tolist()
    if copied.size and policy == "makespan":  # a part is copied last
        assert all(plan.cpu_panels[expert] == 0 for expert in plan.copies[:-1])


@given(steps, simple_costs)
def test_the_papers_algorithm_1(step: Step, costs: SimpleCosts) -> None:
    resident, tokens = arrays(step)
    plan = decide("paper", resident, tokens, costs, PANELS)
    for expert, count in enumerate(tokens.tolist()):
        if count and not resident[expert]:
            saved = costs.cpu_lat(count) - costs.gpu_lat(count) - costs.transfer_lat()
            if abs(saved) > 1e-9:
                assert plan.places[expert] == (Place.STREAMED if saved > 0 else Place.CPU)


@given(steps, simple_costs)
def test_makespan_is_never_slower_than_the_others_by_its_own_model(step: Step, costs: SimpleCosts) -> None:
    resident, tokens = arrays(step)
    seconds = {policy: decide(policy, resident, tokens, costs, PANELS).seconds for policy in POLICIES}
    assert seconds["makespan"] <= min(seconds.values()) * (1 + 1e-8)


@pytest.mark.parametrize("policy", ["makespan", "paper"])
def test_without_a_calibration_the_cpu_is_used(policy: str) -> None:
    plan = decide(policy, np.array([False, True]), np.array([4000, 1]), None, PANELS)
    assert plan.places.tolist() == [Place.CPU, Place.GPU]
    assert plan.seconds == 0


def test_the_experts_with_most_tokens_are_copied() -> None:
    tokens = np.array([300, 20, 0, 900, 5, 600])
    plan = decide("makespan", np.zeros(6, dtype=np.bool_), tokens, SERVER, 448)
    assert list(plan.copies) == [3, 5, 0][: len(plan.copies)]
    assert plan.places[3] == Place.STREAMED
    assert plan.places[4] == Place.CPU


def test_one_token_is_divided_as_measured_together() -> None:
    """What the CPU and the link read at the same time, 131 GB/s where the CPU alone reads 107."""
    plan = decide("makespan", np.zeros(8, dtype=np.bool_), np.array([1, 0, 0, 1, 0, 0, 0, 0]), SERVER, 448)
    alone = decide("cpu", np.zeros(8, dtype=np.bool_), np.array([1, 0, 0, 1, 0, 0, 0, 0]), SERVER, 448)
    assert sorted(plan.places.tolist()) == [IDLE] * 6 + [Place.CPU, Place.SPLIT]
    assert alone.seconds / plan.seconds == pytest.approx(131 / 107, rel=0.04)


def test_a_plan_is_found_again_without_thinking(monkeypatch: pytest.MonkeyPatch) -> None:
    resident, tokens = np.arange(8) < 2, np.array([1, 0, 0, 1, 0, 0, 0, 0])
    first = decide("makespan", resident, tokens, SERVER, 448)
    monkeypatch.delattr("engine.policy._decide")
    assert decide("makespan", resident.copy(), tokens.copy(), SERVER, 448) is first


def test_plans_are_not_kept_for_ever() -> None:
    resident = np.zeros(4, dtype=np.bool_)
    costs = SimpleCosts(1.0, 0.1, 2.0)
    for count in range(3000):
        decide("makespan", resident, np.array([count, count + 1, 1, 2]), costs, PANELS)
    assert len(costs.memo) <= 4097


def test_an_unknown_policy_is_an_error() -> None:
    with pytest.raises(ValueError, match="fastest"):
        decide("fastest", np.array([True]), np.array([1]), None, PANELS)
