"""Places on the (simulated) GPU: contents, arithmetic, and the order in which slots are reused."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from engine.checkpoint.reader import Checkpoint
from engine.experts.bank import ExpertBank, all_experts
from engine.experts.slots import GpuExperts
from engine.experts.stream import DirectStream
from engine.models.tensors import expert as expert_name
from engine.stats import HitCounters

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(make_model):
    return make_model()


@pytest.fixture(scope="module")
def bank(model):
    bank = ExpertBank(model.config)
    with Checkpoint(model.path) as checkpoint:
        bank.fill(checkpoint)
    return bank


def check_runs(gpu, model, layer, expert):
    """The place computes the expert's FFN; compared in float64."""
    x = torch.randn(3, model.config.hidden_size)
    w1, w2, w3 = (model.weights[expert_name(layer, expert, name)].double() for name in ("w1", "w2", "w3"))
    expected = (functional.silu(x.double() @ w1.T) * (x.double() @ w3.T)) @ w2.T
    ours = gpu.run(gpu.place(layer, expert), x)
    torch.testing.assert_close(ours.double(), expected, atol=1e-5, rtol=1e-5)


def test_residents_compute_their_expert(model, bank):
    resident = np.random.default_rng(1).random((2, 4)) < 0.6
    gpu = GpuExperts(model.config, CPU, resident)
    for layer, expert in all_experts(model.config):
        if resident[layer, expert]:
            gpu.store(gpu.place(layer, expert), bank.block(layer, expert))
    for layer, expert in all_experts(model.config):
        if resident[layer, expert]:
            check_runs(gpu, model, layer, expert)
        else:
            assert gpu.place(layer, expert) is None


@given(st.lists(st.integers(0, 7), max_size=30), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_slots_are_reused_least_recently_used_first(model, bank, requests, slots):
    """Against a plain list in order of use. Experts 0 and 5 are resident and never take a slot."""
    resident = np.zeros((2, 4), dtype=bool)
    resident[0, 0] = resident[1, 1] = True
    gpu = GpuExperts(model.config, CPU, resident, slots=slots)
    counters = HitCounters(2, 4)
    stream = DirectStream(bank, gpu, counters)
    recent = []
    copies = 0
    for request in requests:
        layer, expert = divmod(request, 4)
        if resident[layer, expert]:
            continue
        if not gpu.present[layer, expert]:
            stream.fetch(layer, expert)
            copies += 1
        stream.release(gpu.place(layer, expert))
        recent = [other for other in recent if other != request] + [request]
        recent = recent[-slots:]
        held = {divmod(other, 4) for other in recent} | {(0, 0), (1, 1)}
        assert {tuple(map(int, item)) for item in np.argwhere(gpu.present)} == held
        check_runs(gpu, model, layer, expert)
    assert counters.streamed_bytes == copies * bank.shape.nbytes


def test_a_placement_of_another_model_is_refused(model):
    with pytest.raises(ValueError, match="placement"):
        GpuExperts(model.config, CPU, np.zeros((2, 5), dtype=bool))


def test_bytes_count_slots_too(model):
    gpu = GpuExperts(model.config, CPU, np.ones((2, 4), dtype=bool), slots=3)
    assert gpu.nbytes == 11 * 24576  # two panels of 12 tiles, 1 KB each
