"""The copy that a long chunk begins for a layer whose router has not chosen yet."""

import numpy as np
import pytest
import torch

from engine.drift import Drift
from engine.errors import Cancelled
from engine.events import Phase, Place
from engine.latency import Curve, LatencyModel
from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import Placement
from tests.engine.costs import SimpleCosts

IDS = torch.randint(0, 61, (40,), generator=torch.Generator().manual_seed(2))
COPYING = SimpleCosts(cpu=1.0, gpu=1e-6, transfer=1e-6)
CPU_ONLY = LatencyModel(cpu=Curve.fit([(1, 1e-3), (8, 2e-3)]), other_decode=1e-3)


@pytest.fixture
def loaded(make_model):
    """A model of three layers on a CPU and a second one, whose experts are all copied."""
    model = make_model(num_hidden_layers=3, num_local_experts=6)
    options = LoadOptions(device="cpu", threads=1, policy="stream")
    nothing = Placement(np.zeros((3, 6), dtype=bool))
    with load_model(model.path, options, nothing, expert_device=torch.device("cpu")) as loaded:
        yield loaded


def logits(loaded, tokens=40, **named):
    return loaded.model.forward(IDS[:tokens], loaded.model.new_cache(64), logits="all", **named)


def fetches(loaded, monkeypatch):
    """Which layers' experts were copied while which layer was run, from now on."""
    told, running = [], [0]
    fetch, run = loaded.executor.stream.fetch, loaded.executor.run

    def fetching(layer, expert, panels=None):
        told.append((running[0], layer))
        return fetch(layer, expert, panels)

    def run_layer(layer, *others, **named):
        running[0] = layer
        run(layer, *others, **named)

    monkeypatch.setattr(loaded.executor.stream, "fetch", fetching)
    monkeypatch.setattr(loaded.executor, "run", run_layer)
    return told


@pytest.mark.parametrize(("tokens", "ahead"), [(40, {(0, 1), (1, 2)}), (15, set())])
def test_a_long_chunk_begins_with_a_copy_for_the_next_layer(loaded, monkeypatch, tokens, ahead):
    expected = logits(loaded, tokens)
    loaded.residents.empty_slots()
    loaded.executor.costs = COPYING
    told = fetches(loaded, monkeypatch)
    ours = logits(loaded, tokens)
    assert {each for each in told if each[0] != each[1]} == ahead
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_it_is_begun_before_whole_layers_for_the_one_behind_them(make_model, monkeypatch):
    model = make_model(num_hidden_layers=4, num_local_experts=6)
    resident = np.zeros((4, 6), dtype=bool)
    resident[[1, 3]] = True
    options = LoadOptions(device="cpu", threads=1, policy="stream")
    with load_model(model.path, options, Placement(resident), expert_device=torch.device("cpu")) as loaded:
        expected = logits(loaded)
        loaded.residents.empty_slots()
        loaded.executor.costs = COPYING
        loaded.counters.reset()
        told = fetches(loaded, monkeypatch)
        ours = logits(loaded)
        counts = loaded.counters.snapshot().counts[Phase.PREFILL]
    assert {each for each in told if each[0] != each[1]} == {(0, 2)}
    assert (
        counts[2, :, Place.STREAMED].sum() == counts[2].sum() == len([each for each in told if each[1] == 2])
    )
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("costs", [None, CPU_ONLY, Drift(CPU_ONLY)])
def test_without_the_costs_of_copies_none_is_begun_ahead(loaded, monkeypatch, costs):
    expected = logits(loaded)
    loaded.residents.empty_slots()
    loaded.executor.costs = costs
    told = fetches(loaded, monkeypatch)
    torch.testing.assert_close(logits(loaded), expected, atol=1e-5, rtol=1e-5)
    assert told
    assert all(running == layer for running, layer in told)


def test_a_cancel_after_such_a_copy_leaves_nothing_wrong(loaded, monkeypatch):
    expected = logits(loaded)
    loaded.executor.costs = COPYING
    checks = []

    def check():
        checks.append(None)
        if len(checks) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        logits(loaded, check=check)
    assert loaded.residents.present[1].any()  # what was begun for the layer that was not reached
    loaded.residents.empty_slots()
    told = fetches(loaded, monkeypatch)
    torch.testing.assert_close(logits(loaded), expected, atol=1e-5, rtol=1e-5)
    assert (0, 1) in told  # begun again
