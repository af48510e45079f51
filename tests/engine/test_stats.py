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


def test_both_ways_to_count_agree():
    by_plan, one_by_one = HitCounters(1, 4), HitCounters(1, 4)
    by_plan.add(Phase.DECODE, 0, np.array([IDLE, Place.CPU, IDLE, Place.CPU], dtype=np.int8))
    one_by_one.add_each(Phase.DECODE, 0, [3, 1], Place.CPU)
    assert np.array_equal(by_plan.snapshot().counts, one_by_one.snapshot().counts)


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
