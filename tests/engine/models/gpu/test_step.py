"""Decode steps by captured graphs against the plain torch path, and what they leave after a fault."""

import time

import numpy as np
import pytest
import torch

from engine.accounting import Part
from engine.events import Phase, Place
from engine.kvbatch import SequenceBatch
from engine.models.linear import QuantisedLinear
from engine.models.loader import load_model
from engine.models.routing_source import RoutingSource
from engine.options import LoadOptions
from engine.placement import Placement
from kernels.cpu import Isa

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
FORMATS = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
ROUNDED = 1e-2  # torch's path rounds weights of 8 and 4 bits to bf16, the graphs' kernels do not


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(
        seed=3, hidden_size=256, intermediate_size=320, num_hidden_layers=4, num_local_experts=8
    )


def load(model, *, share=0.5, precision="bf16", number_format=torch.float32, policy="cpu"):
    shape = (model.config.num_layers, model.config.num_experts)
    placement = Placement(np.random.default_rng(0).random(shape) < share)
    options = LoadOptions(device="cuda", precision=precision, policy=policy, threads=2)
    # In float32, as the GPU here: activations rounded to bf16 would differ between two paths that agree.
    return load_model(model.path, options, placement, gpu_format=number_format, isa=Isa.AVX2)


def logits_of(loaded, ids, steps):
    """The prompt, then `steps` tokens one by one: float32 [steps, vocabulary]."""
    cache = loaded.model.new_cache(len(ids))
    loaded.model.forward(ids[:-steps], cache)
    return torch.cat([loaded.model.forward(token[None], cache) for token in ids[-steps:]])


@pytest.fixture
def ids(model):
    return torch.randint(0, model.config.vocab_size, (40,), generator=torch.Generator().manual_seed(1))


def without_graphs(loaded):
    """Torch's operations alone, in the dense layers too: those use the graphs' kernels for a few tokens."""
    model = loaded.model
    model._decoder = None
    layers = [part for layer in model.weights.layers for part in (layer.qkv, layer.attention_out)]
    for part in (*layers, model.weights.output):
        if isinstance(part, QuantisedLinear):
            part._triton = False
    return loaded


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
@pytest.mark.parametrize("number_format", FORMATS)
def test_graphs_compute_what_torch_computes(model, ids, share, precision, number_format):
    how = {"share": share, "precision": precision, "number_format": number_format}
    with load(model, **how) as loaded:
        assert loaded.model._decoder is not None
        ours = logits_of(loaded, ids, 16)
        theirs = logits_of(without_graphs(loaded), ids, 16)
    errors = (ours - theirs).norm(dim=1) / theirs.norm(dim=1)
    assert errors.median() <= max(FORMATS[number_format], ROUNDED if precision != "bf16" else 0)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 16])
def test_a_batch_computes_what_torch_computes(model, count):
    generator = torch.Generator().manual_seed(count)
    lengths = torch.randint(1, 30, (count,), generator=generator).tolist()
    vocabulary = model.config.vocab_size

    def run(loaded):
        numbers = torch.Generator().manual_seed(7)
        batch = SequenceBatch(loaded.model.new_cache(count * 40), count)
        for length in lengths:
            claim = batch.claim(length)
            loaded.model.forward(torch.randint(0, vocabulary, (length,), generator=numbers), claim.cache)
            batch.add(claim)
        rows = []
        for step in range(6):
            tokens = torch.randint(0, vocabulary, (count,), generator=numbers)
            rows.append(loaded.model.forward_batch(tokens, batch))
            if step == 2:
                batch.reorder([(index * 2 + 1) % count for index in range(count)])
        return torch.cat(rows)

    with load(model) as loaded:
        ours = run(loaded)
        theirs = run(without_graphs(loaded))
    assert ((ours - theirs).norm(dim=1) / theirs.norm(dim=1)).max() <= 1e-4


def test_every_execution_is_counted_where_it_ran(model, ids):
    with load(model, share=1.0) as loaded:
        logits_of(loaded, ids, 10)
        hits = loaded.counters.snapshot()
        decode = hits.counts[Phase.DECODE]
        assert decode.sum() == decode[..., Place.GPU].sum() == 10 * model.config.num_layers * 2
    with load(model, share=0.0, policy="stream") as loaded:
        logits_of(loaded, ids, 10)
        decode = loaded.counters.snapshot().counts[Phase.DECODE]
        assert decode.sum() == decode[..., Place.STREAMED].sum() == 10 * model.config.num_layers * 2


def test_routing_can_be_set(model, ids):
    config = model.config
    with load(model) as loaded:
        loaded.model.routing = RoutingSource(config.num_layers, config.num_experts, config.top_k, seed=4)
        ours = logits_of(loaded, ids, 8)
        loaded.model.routing.restart()
        theirs = logits_of(without_graphs(loaded), ids, 8)
    assert ((ours - theirs).norm(dim=1) / theirs.norm(dim=1)).max() <= 1e-4


def test_the_parts_of_the_time_add_up_to_what_passed(model, ids):
    with load(model) as loaded:
        cache = loaded.model.new_cache(400)
        loaded.model.forward(ids, cache)
        loaded.model.forward(ids[:1], cache)
        loaded.executor.account.pause()
        before, begun = loaded.executor.account.snapshot(), time.perf_counter()
        for _ in range(160):
            loaded.model.forward(ids[:1], cache)
        passed = time.perf_counter() - begun
        split = loaded.executor.account.snapshot().since(before)
    assert split.steps == 20  # every eighth
    assert sum(split.parts.values()) == pytest.approx(split.whole)
    assert split.whole / split.steps == pytest.approx(passed / 160, rel=0.5)  # timed steps cost a little more
    assert split.parts[Part.ATTENTION] > 0


def test_a_fault_in_a_step_leaves_the_model_usable(model, ids, monkeypatch):
    with load(model) as loaded:
        expected = logits_of(loaded, ids, 8)
        cache = loaded.model.new_cache(len(ids))
        loaded.model.forward(ids[:-8], cache)
        with monkeypatch.context() as patched:
            patched.setattr(loaded.pool, "submit_experts", broken)
            with pytest.raises(RuntimeError, match="a fault"):
                loaded.model.forward(ids[-8:-7], cache)
        assert cache.length == len(ids) - 8
        again = torch.cat([loaded.model.forward(token[None], cache) for token in ids[-8:]])
    assert torch.equal(again, expected)


def test_a_prompt_of_one_token_needs_no_graphs_of_its_own(model, ids):
    with load(model) as loaded:
        decoder, cache = loaded.model._decoder, loaded.model.new_cache(2)
        loaded.model.forward(ids[:1], cache)
        assert not decoder.is_prepared(cache)
        ours = loaded.model.forward(ids[1:2], cache)
        assert decoder.is_prepared(cache)
        theirs = loaded.model.forward(ids[:2], loaded.model.new_cache(2))
    assert (ours - theirs).norm() <= 1e-4 * theirs.norm()


def test_graphs_made_for_a_conversation_leave_its_cache_as_it_is(model, ids):
    with load(model) as loaded:
        cache = loaded.model.new_cache(len(ids))
        loaded.model.forward(ids[:-8], cache)
        before = cache.data[:, :, :, : cache.length].clone()
        loaded.model.prepare(cache)
        torch.cuda.synchronize()
        assert torch.equal(cache.data[:, :, :, : cache.length], before)


@pytest.mark.parametrize("policy", ["cpu", "stream"])
def test_more_experts_than_slots_and_pairs(make_model, ids, policy):
    """Six experts of a token, of 70: a layer copies more than there are slots, and twelve sequences ask for
    more pairs than the kernels take."""
    many = make_model(
        seed=8, hidden_size=128, intermediate_size=96, num_local_experts=70, num_experts_per_tok=6
    )

    def run(loaded):
        one = logits_of(loaded, ids, 8)
        batch = SequenceBatch(loaded.model.new_cache(200), 12)
        for length in range(1, 13):
            claim = batch.claim(length)
            loaded.model.forward(ids[:length], claim.cache)
            batch.add(claim)
        steps = [loaded.model.forward_batch(ids[first : first + 12], batch) for first in range(4)]
        return torch.cat((one, *steps))

    with load(many, share=0.3, policy=policy) as loaded:
        ours = run(loaded)
        theirs = run(without_graphs(loaded))
    assert ((ours - theirs).norm(dim=1) / theirs.norm(dim=1)).max() <= 1e-4


def test_a_cache_that_goes_away_takes_its_graphs_along(model, ids):
    with load(model) as loaded:
        logits_of(loaded, ids, 2)
        torch.cuda.synchronize()
        taken = torch.cuda.memory_allocated()
        for _ in range(5):
            logits_of(loaded, ids, 2)
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() <= taken + (1 << 20)


def broken(*_):
    raise RuntimeError("a fault")
