"""The host's side of a decode step's missing experts, on the CPU: the plan's shares add up to all of them.

The GPU's memory is the CPU's here, the streamed experts' kernel is torch, and the collecting kernel a loop.
"""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.costs import AtOnce
from engine.events import Phase, Place
from engine.models.gpu.control import Copy
from engine.models.loader import load_model
from engine.models.tensors import expert as expert_name
from engine.options import LoadOptions
from engine.placement import Placement
from tests.engine.costs import SimpleCosts

# Looked for, not imported: tests of kernels choose how to run them before the first import.
pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
EXPERTS, TOP_K, LAYER = 70, 5, 1  # more than there are slots
COSTS = SimpleCosts(cpu=1.0, gpu=1e-3, transfer=0.9)


class Wavering(SimpleCosts):
    """Splits another expert each time."""

    def at_once(self, tokens):
        return AtOnce(1.0 + 0.1 * (len(self.memo) % 5), self.transfer)


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(seed=12, intermediate_size=160, num_local_experts=EXPERTS, num_experts_per_tok=TOP_K)


@pytest.fixture
def step(model, monkeypatch):
    """`step(policy, costs, share)`: the model, its missing experts, and the buffers for four sequences."""
    from engine.models.gpu import missing
    from engine.models.gpu.buffers import StepBuffers

    opened, made, zeros = [], [], torch.zeros

    def run_residents(data, shape, x, ids, weights, table, scratch):
        """Called with the slots from a place on and a table in which one expert has the first of them."""
        assert table.data_ptr() % 16 == 0  # or kernels would be compiled in the middle of a step
        made.append(table)
        gpu = opened[-1].residents
        expert = int((table >= 0).nonzero())
        run(gpu, len(gpu.data) - len(data), expert, 0, x, ids, weights, scratch)

    def build(policy, costs=COSTS, share=0.3):
        resident = np.random.default_rng(5).random((2, EXPERTS)) < share
        options = LoadOptions(device="cpu", threads=2, policy=policy)
        cpu = torch.device("cpu")
        loaded = load_model(model.path, options, Placement(resident), expert_device=cpu)
        opened.append(loaded)
        loaded.executor.costs = costs
        with monkeypatch.context() as patched:  # nothing can be pinned here
            patched.setattr(torch, "zeros", lambda *size, pin_memory=False, **named: zeros(*size, **named))
            buffers = StepBuffers(model.config, loaded.bank.shape, 4, 8, cpu, torch.float32)
        buffers.ids.fill_(-1)
        return loaded, missing.MissingExperts(loaded.executor, buffers), buffers

    monkeypatch.setattr(missing, "run_residents", run_residents)
    build.made = made
    yield build
    for loaded in opened:
        loaded.close()


def route(buffers, sequences, seed):
    """What the router's kernel would leave; the last places are empty."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(4, buffers.host_in.shape[1], generator=g)
    ids = torch.stack([torch.randperm(EXPERTS, generator=g)[:TOP_K] for _ in range(4)]).int()
    ids[1, 0] = ids[0, 0]  # two of a step meet at an expert
    if len(set(ids[1].tolist())) < TOP_K:
        ids[1] = ids[0]
    ids[sequences:] = -1
    weights = torch.rand(4, TOP_K, generator=g)
    for to in (buffers.host_in, buffers.expert_in):
        to.copy_(x)
    for to in (buffers.host_ids[LAYER], buffers.ids):
        to.copy_(ids)
    for to in (buffers.host_weights, buffers.weights):
        to.copy_(weights)
    return x, ids, weights


def run(gpu, place, expert, first, x, ids, weights, scratch):
    """What the kernels do with an expert."""
    for pair in (ids.flatten() == expert).nonzero().flatten().tolist():
        out = gpu.run(place, x[pair // TOP_K][None], (first, gpu.shape.panels))[0]
        scratch.partial[pair] = 0.0
        scratch.partial[pair, -1] = weights.flatten()[pair] * out


def next_graph(gpu, buffers, ids):
    """What it runs of what was copied in, and what it adds for experts that are not residents."""
    b = buffers
    results, *rest = b.control.tolist()
    places, firsts = rest[:EXPERTS], rest[EXPERTS:]
    for expert, place in enumerate(places):
        if place >= 0:
            run(gpu, place, expert, firsts[expert], b.expert_in, b.ids, b.weights, b.streamed)
    out = b.host_out.double() * results
    for pair, expert in enumerate(ids.flatten().tolist()):
        if expert >= 0 and places[expert] != -1:
            out[pair // TOP_K] += buffers.streamed.partial[pair].double().sum(0)
    return out


def expected(model, resident, x, ids, weights):
    """In float64, from the model's own weights."""
    out = torch.zeros(x.shape, dtype=torch.float64)
    for row, chosen, shares in zip(range(len(x)), ids.tolist(), weights.tolist(), strict=True):
        for expert, share in zip(chosen, shares, strict=True):
            if expert < 0 or resident[LAYER, expert]:
                continue
            w1, w2, w3 = (
                model.weights[expert_name(LAYER, expert, name)].double() for name in ("w1", "w2", "w3")
            )
            token = x[row].double()
            out[row] += share * (w2 @ (functional.silu(w1 @ token) * (w3 @ token)))
    return out


def check(model, loaded, missing, buffers, sequences, seed):
    x, ids, weights = route(buffers, sequences, seed)
    missing.run(LAYER, sequences, Phase.DECODE)
    missing.observe()
    ours = next_graph(loaded.residents, buffers, ids)[:sequences]
    missing.launched()
    theirs = expected(model, loaded.residents.resident, x, ids, weights)[:sequences]
    # Some levels of the CPU's kernels round activations to bf16.
    assert (ours - theirs).norm() <= 1e-2 * theirs.norm()


@pytest.mark.parametrize("sequences", [1, 3, 4])
@pytest.mark.parametrize(
    ("policy", "costs"),
    [("cpu", COSTS), ("stream", None), ("makespan", COSTS), ("makespan", Wavering(1.0, 1e-3, 0.9))],
)
def test_both_sides_together_are_what_is_missing(model, step, policy, costs, sequences):
    loaded, missing, buffers = step(policy, costs)
    for seed in range(6):
        check(model, loaded, missing, buffers, sequences, seed)
    hits = loaded.counters.snapshot().counts[Phase.DECODE].sum((0, 1))
    ran = {place for place in Place if hits[place]}
    assert (
        ran
        >= {
            "cpu": {Place.GPU, Place.CPU},
            "stream": {Place.GPU, Place.STREAMED},
            "makespan": {Place.GPU, Place.CPU, Place.STREAMED, Place.SPLIT},
        }[policy]
    )


def test_where_all_chosen_are_residents_the_next_layer_adds_nothing_else(step):
    loaded, missing, buffers = step("stream", share=1.0)
    buffers.tell(results=True, copies=(Copy(3, 0), Copy(63, None)))
    route(buffers, 2, 0)
    missing.run(LAYER, 2, Phase.DECODE)
    assert buffers.control[0] == 0
    assert (buffers.control[1:] == -1).all()
    assert loaded.counters.streamed_bytes == 0


def test_kernels_that_make_room_are_compiled_before_the_first_step(step):
    _, _, buffers = step("stream")
    assert len(step.made) == 1
    assert not buffers.streamed.partial.any()


@pytest.mark.parametrize("call", [1, 2])
def test_after_a_copy_that_failed_the_next_step_is_right(model, step, monkeypatch, call):
    loaded, missing, buffers = step("makespan")
    fetch, tickets, calls = loaded.executor.stream.fetch, [], []
    submit = loaded.pool.submit_experts

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == call:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return fetch(*arguments)

    def submitted(*arguments):
        tickets.append(submit(*arguments))
        return tickets[-1]

    monkeypatch.setattr(loaded.pool, "submit_experts", submitted)
    monkeypatch.setattr(loaded.executor.stream, "fetch", failing)
    route(buffers, 4, 0)
    with pytest.raises(torch.OutOfMemoryError):
        missing.run(LAYER, 4, Phase.DECODE)
    assert tickets
    assert not any(ticket.running for ticket in tickets)  # or the CPU would write into the next step
    for seed in range(3):
        check(model, loaded, missing, buffers, 4, seed)
