"""Costs that follow a machine which is not, or no longer, as it was calibrated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.costs import ExpertCosts
from engine.drift import Drift
from engine.makespan import Division
from engine.policy import LayerPlan, decide
from tests.engine.costs import SimpleCosts

PANELS = 100
NOTHING = np.zeros(8, dtype=np.bool_)
ONE_TOKEN = np.array([1, 1, 0, 0, 0, 0, 0, 0])
PROMPT = np.full(8, 6)
LINK_AND_CPU = SimpleCosts(cpu=1.0, gpu=0.01, transfer=2.0, slowdown=1.2, stretch=1.2)


def machine(cpu: float = 1.0, copies: float = 1.0) -> SimpleCosts:
    """One that takes so many times as long as it was calibrated."""
    return SimpleCosts(cpu=cpu, gpu=0.01, transfer=2.0 * copies, slowdown=1.2, stretch=1.2)


def truth(plan: LayerPlan, tokens: np.ndarray, real: ExpertCosts) -> tuple[float, float]:
    """What the sides of a plan really take: the division that the plan is, with the real costs."""
    active = [int(count) for count in tokens if count]
    copied = PANELS * len(active) - int(plan.cpu_panels.sum())
    cpu, copy, _ = Division(active, [], real, PANELS).times(copied)
    return cpu, copy


def run(
    drift: Drift, real: ExpertCosts, layers: int, tokens: np.ndarray = ONE_TOKEN, noise: float = 0.0
) -> None:
    random = np.random.default_rng(layers)
    late = 0.0
    for _ in range(layers):
        plan = decide("makespan", NOTHING, tokens, drift, PANELS)
        cpu, copy = truth(plan, tokens, real)
        wobble = 1 + noise * random.uniform(-1, 1, 2)
        drift.observe(plan, cpu * wobble[0], late)  # a copy's end is heard of in the next layer
        late = copy * wobble[1]


def seconds(drift: Drift, real: ExpertCosts, tokens: np.ndarray = ONE_TOKEN) -> float:
    """What a layer really takes as it is planned now."""
    return max(truth(decide("makespan", NOTHING, tokens, drift, PANELS), tokens, real))


def best(real: ExpertCosts, tokens: np.ndarray = ONE_TOKEN) -> float:
    return max(truth(decide("makespan", NOTHING, tokens, real, PANELS), tokens, real))


def test_before_anything_ran_it_is_the_calibration() -> None:
    drift = Drift(LINK_AND_CPU)
    assert drift.error is None
    assert drift.refits == 0
    for tokens in (1, 300):
        assert drift.cpu_lat(tokens) == LINK_AND_CPU.cpu_lat(tokens)
        assert drift.at_once(tokens) == LINK_AND_CPU.at_once(tokens)
    assert (drift.transfer_lat(), drift.gpu_lat(3)) == (2.0, 0.01)
    assert (drift.start_cpu(), drift.start_copy()) == (0.0, 0.0)


@given(st.floats(0.87, 1.15), st.floats(0.87, 1.15))
@settings(max_examples=20, deadline=None)
def test_small_errors_are_trimmed_without_a_word(cpu: float, copies: float) -> None:
    drift, real = Drift(LINK_AND_CPU), machine(cpu, copies)
    run(drift, real, 1000, noise=0.1)
    assert drift.refits == 0
    assert drift.error is not None
    assert abs(drift.error) < 0.1
    assert seconds(drift, real) <= 1.03 * best(real)


@given(
    st.sampled_from([0.4, 0.7, 1.0, 1.5, 3.0]),
    st.sampled_from([0.4, 0.7, 1.0, 1.5, 3.0]),
    st.sampled_from([ONE_TOKEN, PROMPT]),
)
@settings(max_examples=30, deadline=None)
def test_large_ones_are_corrected(cpu: float, copies: float, tokens: np.ndarray) -> None:
    drift, real = Drift(LINK_AND_CPU), machine(cpu, copies)
    run(drift, real, 1200, tokens, noise=0.05)
    assert (drift.refits > 0) == (not cpu == copies == 1.0)
    assert drift.error is not None
    assert abs(drift.error) < 0.25
    assert seconds(drift, real, tokens) <= 1.25 * best(real, tokens)


def test_a_side_that_was_slow_once_is_tried_again() -> None:
    """Copies are slow until memory is pinned, and then they are not made at all."""
    drift = Drift(LINK_AND_CPU)
    run(drift, machine(copies=10), 200)
    assert not decide("makespan", NOTHING, ONE_TOKEN, drift, PANELS).copies
    corrections = drift.refits
    run(drift, machine(), 5000)
    assert decide("makespan", NOTHING, ONE_TOKEN, drift, PANELS).copies
    assert drift.refits <= corrections + 2
    assert seconds(drift, machine()) <= 1.2 * best(machine())


def test_a_prompt_does_not_change_what_is_known_of_single_tokens() -> None:
    drift = Drift(LINK_AND_CPU)
    slow_arithmetic = SimpleCosts(cpu=2.0, gpu=0.01, transfer=2.0, slowdown=1.2, stretch=1.2)
    run(drift, slow_arithmetic, 200, PROMPT)
    assert drift.cpu_lat(6) == pytest.approx(12, rel=0.1)
    assert drift.cpu_lat(1) == 1.0


def test_plans_are_made_anew_after_a_correction() -> None:
    drift = Drift(LINK_AND_CPU)
    before = decide("makespan", NOTHING, ONE_TOKEN, drift, PANELS)
    run(drift, machine(cpu=3), 100)
    after = decide("makespan", NOTHING, ONE_TOKEN, drift, PANELS)
    assert after.cpu_panels.sum() < before.cpu_panels.sum()


def test_layers_in_which_only_the_gpu_works_say_nothing() -> None:
    drift = Drift(LINK_AND_CPU)
    for _ in range(200):
        drift.observe(decide("makespan", ~NOTHING, ONE_TOKEN, drift, PANELS), 0.0, 0.0)
    assert drift.error is None
    assert drift.refits == 0


def test_copies_whose_end_is_heard_of_in_a_layer_without_any_count_all_the_same() -> None:
    drift = Drift(LINK_AND_CPU)
    for _ in range(200):
        late = 0.0
        for resident in (NOTHING, NOTHING, ~NOTHING):
            plan = decide("makespan", resident, ONE_TOKEN, drift, PANELS)
            cpu, copy = truth(plan, ONE_TOKEN, LINK_AND_CPU) if plan.copies else (0.0, 0.0)
            drift.observe(plan, cpu, late)
            late = copy
    assert drift.transfer_lat() == pytest.approx(LINK_AND_CPU.transfer_lat(), rel=0.02)
    assert drift.refits == 0
