"""Policies: the rule of the paper's Algorithm 1, and what holds for every policy."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Place
from engine.options import POLICIES
from engine.policy import IDLE, decide


@dataclass(frozen=True)
class Costs:
    """The paper's form: the CPU linear in the tokens, the GPU constant."""

    cpu: float
    gpu: float
    transfer: float

    def cpu_lat(self, tokens):
        return self.cpu * tokens

    def gpu_lat(self, tokens=1):
        return self.gpu

    def transfer_lat(self):
        return self.transfer


steps = st.lists(st.tuples(st.booleans(), st.integers(0, 50)), min_size=1, max_size=16)
costs = st.builds(Costs, *[st.floats(0.01, 10)] * 3) | st.none()


def arrays(step):
    resident, tokens = zip(*step, strict=True)
    return np.array(resident), np.array(tokens, dtype=np.int64)


@given(st.sampled_from(POLICIES), steps, costs)
def test_every_policy(policy, step, costs):
    resident, tokens = arrays(step)
    plan = decide(policy, resident, tokens, costs)
    for expert, place in enumerate(plan):
        assert (place == IDLE) == (tokens[expert] == 0)
        if tokens[expert]:
            assert (place == Place.GPU) == resident[expert]
    used = set(plan[(tokens > 0) & ~resident].tolist())
    assert used <= {"cpu": {Place.CPU}, "stream": {Place.STREAMED}}.get(policy, {Place.CPU, Place.STREAMED})


@given(steps, costs.filter(bool))
def test_the_papers_algorithm_1(step, costs):
    resident, tokens = arrays(step)
    plan = decide("paper", resident, tokens, costs)
    for expert, count in enumerate(tokens.tolist()):
        if count and not resident[expert]:
            pays = costs.cpu * count > costs.gpu + costs.transfer
            assert plan[expert] == (Place.STREAMED if pays else Place.CPU)


def test_without_a_calibration_the_paper_uses_the_cpu():
    plan = decide("paper", np.array([False, True]), np.array([4000, 1]), None)
    assert plan.tolist() == [Place.CPU, Place.GPU]


def test_an_unknown_policy_is_an_error():
    with pytest.raises(ValueError, match="makespan"):
        decide("makespan", np.array([True]), np.array([1]), None)
