"""Where experts run, and how they are divided, changes no token: random placements and random splits."""

import numpy as np
import pytest
import torch

from engine.costs import AtOnce
from engine.events import Phase, Place
from engine.kvbatch import SequenceBatch
from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import Placement
from kernels.cpu import Isa, available_isas

TRIALS = 12
STEPS = 24
SEQUENCES = 3
CUDA = pytest.param(
    "cuda",
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ],
)


class Forgetful(dict):
    """Keeps plans for nobody."""

    def get(self, key, default=None):
        return default


class MoodyCosts:
    """A machine that is another one each time it is asked: every plan and every split comes up."""

    def __init__(self, seed):
        self._random = np.random.default_rng(seed)
        self.memo = Forgetful()

    def cpu_lat(self, tokens):
        return tokens * self._random.uniform(0.5, 2.0)

    def gpu_lat(self, tokens=1):
        return 0.01

    def transfer_lat(self):
        return self._random.uniform(0.3, 3.0)

    def start_cpu(self):
        return 0.0

    def start_copy(self):
        return 0.0

    def at_once(self, tokens):
        return AtOnce(1.0, self._random.uniform(0.5, 3.0))


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(
        seed=5,
        hidden_size=96,
        intermediate_size=200,
        num_hidden_layers=3,
        num_local_experts=6,
        num_experts_per_tok=2,
    )


def load(model, device, placement, seed):
    second = torch.device("cpu") if device == "cpu" else None
    options = LoadOptions(threads=2, device=device, policy="makespan")
    isa = Isa.AVX2 if Isa.AVX2 in available_isas() else Isa.PORTABLE  # float32, as the second device
    loaded = load_model(model.path, options, placement, isa=isa, expert_device=second)
    loaded.executor.costs = MoodyCosts(seed)
    return loaded


def placements(model):
    """None, all, and random ones."""
    shape = (model.config.num_layers, model.config.num_experts)
    random = np.random.default_rng(1)
    tables = [np.zeros(shape, dtype=bool), np.ones(shape, dtype=bool)]
    tables += [random.random(shape) < random.random() for _ in range(TRIALS - 2)]
    return [Placement(table) for table in tables]


def greedy(loaded, prompt):
    """The prompt in uneven chunks, then greedy steps: the tokens, and the least margin of a best one."""
    cache = loaded.model.new_cache(len(prompt) + STEPS)
    for part in prompt.split(9):
        logits = loaded.model.forward(part, cache)
    tokens, margin = [], float("inf")
    for _ in range(STEPS):
        best = logits[-1].topk(2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        tokens.append(int(best.indices[0]))
        logits = loaded.model.forward(torch.tensor(tokens[-1:]), cache)
    return tokens, margin


def greedy_batch(loaded, prompts):
    """The same for several sequences decoded together: a list of tokens each."""
    batch = SequenceBatch(loaded.model.new_cache(400), len(prompts))
    last = []
    for prompt in prompts:
        claim = batch.claim(len(prompt))
        last.append(loaded.model.forward(prompt, claim.cache)[-1])
        batch.add(claim)
    rows, tokens = torch.stack(last), []
    for _ in range(STEPS):
        tokens.append(rows.argmax(1))
        rows = loaded.model.forward_batch(tokens[-1], batch)
    return torch.stack(tokens, 1).tolist()


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_greedy_tokens_do_not_depend_on_placement_and_split(model, device):
    generator = torch.Generator().manual_seed(0)
    prompt = torch.randint(0, model.config.vocab_size, (21,), generator=generator)
    expected, places = None, np.zeros(len(Place), dtype=np.int64)
    for seed, placement in enumerate(placements(model)):
        with load(model, device, placement, seed) as loaded:
            tokens, margin = greedy(loaded, prompt)
            hits = loaded.counters.snapshot()
        assert margin > 1e-4  # else a tie would decide, and the test would say nothing
        expected = expected or tokens
        assert tokens == expected, seed
        places += hits.counts[Phase.DECODE].sum((0, 1))
    assert (places > 0).all()  # every way of running an expert took part


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_sequences_together_say_what_each_says_alone(model, device):
    generator = torch.Generator().manual_seed(3)
    prompts = [
        torch.randint(0, model.config.vocab_size, (length,), generator=generator) for length in (5, 21, 12)
    ]
    expected = None
    for seed, placement in enumerate(placements(model)[:6]):
        with load(model, device, placement, seed) as loaded:
            alone = [greedy(loaded, prompt) for prompt in prompts]
            together = greedy_batch(loaded, prompts)
        assert min(margin for _, margin in alone) > 1e-4
        expected = expected or [tokens for tokens, _ in alone]
        assert [tokens for tokens, _ in alone] == expected
        assert together == expected, seed
