"""Hit counters against a plain count, and that a snapshot stands still."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Phase, Place
from engine.policy import IDLE
from engine.stats import HitCounters

LAYERS, EXPERTS = 2, 3
plans = st.lists(st.sampled_from([IDLE, *Place]), min_size=EXPERTS, max_size=EXPERTS)


@given(st.lists(st.tuples(st.sampled_from(list(Phase)), st.integers(0, LAYERS - 1), plans), max_size=20))
def test_counts_every_execution_once(steps):
    counters = HitCounters(LAYERS, EXPERTS)
    expected = np.zeros((2, LAYERS, EXPERTS, len(Place)), dtype=np.int64)
    for phase, layer, plan in steps:
        counters.add(phase, layer, np.array(plan, dtype=np.int8))
        for expert, place in enumerate(plan):
            if place != IDLE:
                expected[phase, layer, expert, place] += 1
    assert np.array_equal(counters.snapshot().counts, expected)


def test_all_ways_to_count_agree():
    by_plan, one_by_one, several = (HitCounters(3, 4) for _ in range(3))
    for layer in (0, 2):
        by_plan.add(Phase.DECODE, layer, np.array([IDLE, Place.GPU, IDLE, Place.GPU], dtype=np.int8))
        one_by_one.add_each(Phase.DECODE, layer, [3, 1], Place.GPU)
    chosen = np.array([[3, 1, 3], [1, 1, 3]], dtype=np.int32)
    several.add_chosen(Phase.DECODE, np.array([0, 2]), chosen, Place.GPU)
    assert np.array_equal(by_plan.snapshot().counts, one_by_one.snapshot().counts)
    assert np.array_equal(by_plan.snapshot().counts, several.snapshot().counts)


def test_a_snapshot_stands_still_and_reset_starts_again():
    counters = HitCounters(1, 1)
    counters.add_each(Phase.PREFILL, 0, [0], Place.GPU)
    counters.add_bytes(7)
    before = counters.snapshot()
    counters.add_each(Phase.PREFILL, 0, [0], Place.GPU)
    assert before.total(Place.GPU) == 1
    assert counters.snapshot().total(Place.GPU) == 2
    assert counters.streamed_bytes == 7
    counters.reset()
    assert counters.snapshot().counts.sum() == 0
    assert counters.streamed_bytes == 0
    assert before.total(Place.GPU) == 1
