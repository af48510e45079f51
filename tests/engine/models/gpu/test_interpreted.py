"""Whole decode steps of the GPU's path, without one: kernels are interpreted, a graph is what it records."""

from contextlib import nullcontext
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.checkpoint.reader import Checkpoint
from engine.events import Phase, Place
from engine.kvbatch import SequenceBatch
from engine.models.linear import PlainLinears
from engine.models.loader import load_model
from engine.models.mixtral import MixtralModel
from engine.models.rope import RotaryTable
from engine.models.weights import load_as
from engine.options import LoadOptions
from engine.placement import Placement
from kernels.cpu import Isa
from kernels.gpu import support
from kernels.isa import available_isas
from tests.engine.costs import SimpleCosts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="compiled for the GPU instead"),
]
CPU = torch.device("cpu")
COSTS = SimpleCosts(cpu=1.0, gpu=1e-3, transfer=0.9)  # experts are divided
LAYERS, EXPERTS = 3, 6


class Nothing:
    """An event or a stream without a GPU: all has happened already."""

    def __init__(self, *_, **__):
        pass

    def record(self, *_):
        pass

    def synchronize(self):
        pass

    def wait_stream(self, stream):
        pass

    def elapsed_time(self, other):
        return 0.0


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(
        seed=14, num_hidden_layers=LAYERS, num_local_experts=EXPERTS, intermediate_size=64, sliding_window=7
    )


@pytest.fixture
def make(model, monkeypatch):
    """`make(policy, costs, whole, of)`: a loaded model and a decoder of the same weights.

    Layer 0 is resident in part, layer 1 as a whole or not at all, layer 2 not at all; the only layer of
    another model, `of`, as layer 1.
    """
    from engine.models.gpu import graphs, step
    from tests.kernels.gpu import interpreter

    interpreter.mend()

    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *size, pin_memory=False, **named: zeros(*size, **named))
    for name in ("Event", "Stream"):
        monkeypatch.setattr(torch.cuda, name, Nothing)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Nothing())
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)

    def capture(self, work):
        work()  # as before a capture: nothing may be stored
        return SimpleNamespace(replay=work)

    monkeypatch.setattr(graphs.StepGraphs, "_capture", capture)
    opened = []

    def build(policy="makespan", costs=COSTS, whole=True, of=model):
        resident = np.random.default_rng(3).random((LAYERS, EXPERTS)) < 0.5
        resident[1], resident[2] = whole, False
        if of is not model:
            resident = resident[1:2]
        options = LoadOptions(device="cpu", threads=1, policy=policy)
        isa = min(max(available_isas()), Isa.AVX2)  # whose activations are float32
        loaded = load_model(of.path, options, Placement(resident), isa=isa, expert_device=CPU)
        opened.append(loaded)
        loaded.executor.costs = costs
        with Checkpoint(of.path) as checkpoint:
            weights = load_as(PlainLinears(CPU, torch.float32), checkpoint, of.config, CPU)
        rope = RotaryTable(of.config.head_dim, of.config.rope_theta, CPU)
        return loaded, step.GpuDecoder(of.config, weights, loaded.executor, rope, CPU)

    yield build
    for loaded in opened:
        loaded.close()


def random_ids(count, seed=0):
    return torch.randint(0, 61, (count,), generator=torch.Generator().manual_seed(seed))


def close(ours, theirs):
    return bool(((ours - theirs).norm(dim=1) <= 1e-4 * theirs.norm(dim=1)).all())


@pytest.mark.parametrize(("policy", "costs"), [("makespan", COSTS), ("stream", None)])
def test_tokens_have_the_logits_of_the_torch_path(make, policy, costs):
    loaded, decoder = make(policy, costs)
    ids, cache = random_ids(11), loaded.model.new_cache(20)
    loaded.model.forward(ids[:9], cache)
    before = cache.data[:, :, :, :9].clone()
    decoder.prepare(cache)
    assert torch.equal(cache.data[:, :, :, :9], before)
    loaded.counters.reset()
    found = []
    for token in ids[9:].tolist():
        found.append(decoder.step_of(cache, token, Phase.DECODE))
        cache.length += 1
    counts = loaded.counters.snapshot().counts[Phase.DECODE]
    assert (counts.sum((1, 2)) == 2 * loaded.model.config.top_k).all()
    assert counts[1].sum() == counts[1, :, Place.GPU].sum()
    assert counts[2, :, Place.GPU].sum() == 0
    expected = loaded.model.forward(ids, loaded.model.new_cache(20), logits="all")[9:]
    assert close(torch.cat(found), expected)


def test_no_layer_need_be_whole(make):
    loaded, decoder = make(whole=False)
    ids, cache = random_ids(4), loaded.model.new_cache(8)
    loaded.model.forward(ids[:3], cache)
    found = decoder.step_of(cache, int(ids[3]), Phase.DECODE)
    assert close(found, loaded.model.forward(ids, loaded.model.new_cache(8), logits="all")[3:])


@pytest.mark.parametrize("whole", [True, False])
def test_a_single_layer_is_enough(make, make_model, whole):
    """Where it is whole the host stops nowhere, else there is no layer behind the only stop."""
    single = make_model(seed=4, num_hidden_layers=1, num_local_experts=EXPERTS, intermediate_size=64)
    loaded, decoder = make("stream", None, whole, single)
    ids, cache = random_ids(4), loaded.model.new_cache(8)
    loaded.model.forward(ids[:3], cache)
    loaded.residents.empty_slots()
    loaded.counters.reset()
    found = decoder.step_of(cache, int(ids[3]), Phase.DECODE)
    counts = loaded.counters.snapshot().counts[Phase.DECODE]
    assert counts.sum() == counts[..., Place.GPU if whole else Place.STREAMED].sum() == single.config.top_k
    assert close(found, loaded.model.forward(ids, loaded.model.new_cache(8), logits="all")[3:])


def test_heads_too_wide_for_the_kernels_are_left_to_torch(make, make_model, monkeypatch):
    """Decided when the model is loaded, not by the first token's failure."""
    monkeypatch.setattr(support, "usable", lambda device: True)
    made = []
    for head_dim in (256, 512):
        wide = make_model(
            seed=5, num_hidden_layers=1, num_local_experts=EXPERTS, intermediate_size=64, head_dim=head_dim
        )
        loaded, decoder = make(of=wide)
        assert bool(decoder.most_sequences) == (head_dim == 256)
        cuda = torch.device("cuda", 0)
        executor = SimpleNamespace(
            gpu=SimpleNamespace(device=cuda, resident=loaded.residents.resident), account=None
        )
        model = SimpleNamespace(
            device=cuda, executor=executor, config=wide.config, weights=decoder._weights, _rope=None
        )
        made.append(MixtralModel._make_decoder(model))
    assert [each is None for each in made] == [False, True]


def test_sequences_of_a_batch_have_the_logits_they_have_alone(make):
    """Of different lengths: three in a batch for four, two of which say the same; then two."""
    loaded, decoder = make()
    model = loaded.model
    batch = SequenceBatch(model.new_cache(60), 4)
    histories = []
    for length in (4, 11, 1):
        claim = batch.claim(length)
        histories.append(random_ids(length, seed=length).tolist())
        model.forward(torch.tensor(histories[-1]), claim.cache, phase=Phase.PREFILL)
        batch.add(claim)
    for parents in ([1, 0, 1], [2, 1]):
        batch.reorder(parents)
        tokens = random_ids(len(parents), seed=len(histories[0])).tolist()
        histories = [[*histories[parent], token] for parent, token in zip(parents, tokens, strict=True)]
        batch.begin_step()
        lengths = batch.lengths.tolist()
        ours = decoder.step(tokens, lengths, batch, batch.pool.data, batch.rows, Phase.DECODE)
        batch.end_step()
        alone = [model.forward(torch.tensor(each), model.new_cache(30))[-1] for each in histories]
        assert close(ours, torch.stack(alone))


def test_after_a_fault_in_the_middle_of_a_step_it_can_be_made_again(make, monkeypatch):
    loaded, decoder = make("cpu")
    ids, cache = random_ids(8), loaded.model.new_cache(10)
    loaded.model.forward(ids[:7], cache)
    submit, calls = loaded.pool.submit_experts, []

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise RuntimeError("a fault")
        return submit(*arguments)

    monkeypatch.setattr(loaded.pool, "submit_experts", failing)
    with pytest.raises(RuntimeError, match="a fault"):
        decoder.step_of(cache, int(ids[7]), Phase.DECODE)
    ours = decoder.step_of(cache, int(ids[7]), Phase.DECODE)
    assert close(ours, loaded.model.forward(ids, loaded.model.new_cache(10)))
