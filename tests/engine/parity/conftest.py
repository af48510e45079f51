"""Forty random Mixtral models, what transformers computes with them, and a report of the errors found."""

import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import pytest
import torch
from transformers import MixtralForCausalLM

from engine.models.config import MixtralConfig

CASES = 40
DECODE_STEPS = 20
HEADS = [(1, 1), (2, 1), (4, 2), (6, 2), (8, 8), (9, 3), (12, 4), (8, 1)]  # with 1 to 8 queries per key head
PROMPTS = [1, 2, 3, 7, 16, 33, 64, 100, 171, 300]


@dataclass(frozen=True)
class Case:
    """One random model, a token sequence, and how its prompt is cut into chunks."""

    number: int
    path: object
    raw: dict
    prompt: int
    chunk: int
    ids: torch.Tensor

    def _transformers(self, dtype):
        """One full forward without a cache: logits float32 [tokens, vocabulary], router logits per layer."""
        model = MixtralForCausalLM.from_pretrained(
            self.path, dtype=dtype, experts_implementation="eager", attn_implementation="eager"
        ).eval()
        with torch.inference_mode():
            result = model(self.ids[None], use_cache=False, output_router_logits=True)
        return result.logits[0].float(), [layer.float() for layer in result.router_logits]

    @cached_property
    def _float32(self):
        return self._transformers(torch.float32)

    @property
    def config(self):
        return MixtralConfig.from_dict(self.raw)

    @property
    def reference(self):
        """The float32 logits of every position."""
        return self._float32[0]

    @cached_property
    def bf16_error(self):
        """transformers' own error in bf16, per position."""
        return _row_errors(self._transformers(torch.bfloat16)[0], self.reference)

    @cached_property
    def margin(self):
        """Per position: the smallest distance in any layer between the last chosen and the next expert."""
        top_k = self.raw["num_experts_per_tok"]
        margins = [torch.full((len(self.ids),), float("inf"))]
        for logits in self._float32[1]:
            if logits.shape[1] > top_k:
                values = logits.topk(top_k + 1).values
                margins.append(values[:, -2] - values[:, -1])
        return torch.stack(margins).amin(0)


def _row_errors(ours, reference):
    return (ours - reference).norm(dim=1) / reference.norm(dim=1)


@pytest.fixture
def row_errors():
    """`row_errors(ours, reference)`: the relative error of each row, by norms."""
    return _row_errors


def random_case(number):
    """The config.json of a case, its prompt length, chunk size and seed; the first cases fix the extremes."""
    rng = random.Random(number)
    heads, kv_heads = HEADS[number % len(HEADS)]
    head_dim = rng.choice([2, 6, 8, 12, 16, 20])
    free_width = rng.random() < 0.5  # then hidden is not heads × head_dim
    experts = [2, 16][number] if number < 2 else rng.randint(2, 16)
    raw = {
        "vocab_size": rng.randint(40, 300),
        "hidden_size": rng.randint(20, 150) if free_width else heads * head_dim,
        "intermediate_size": rng.randint(10, 150),
        "num_hidden_layers": rng.randint(1, 3),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim if free_width else None,
        "num_local_experts": experts,
        "num_experts_per_tok": min(experts, 1 + number % 4),
        "sliding_window": rng.choice([None, None, 1, 5, 32, 200]),
        "tie_word_embeddings": rng.random() < 0.5,
        "rms_norm_eps": rng.choice([1e-5, 1e-6]),
    }
    theta = rng.choice([1e4, 1e5, 1e6])
    if rng.random() < 0.5:  # the form of transformers 5, and the older one
        raw |= {"rope_parameters": {"rope_type": "default", "rope_theta": theta}}
    else:
        raw |= {"rope_theta": theta}
    return raw, PROMPTS[(number * 7) % len(PROMPTS)], rng.choice([1, 8, 31, 64])


@pytest.fixture(scope="session")
def case(make_model):
    """`case(number)`: made on first use, and kept for the other tests."""
    made = {}

    def get(number):
        if number not in made:
            raw, prompt, chunk = random_case(number)
            model = make_model(seed=number, **raw)
            generator = torch.Generator().manual_seed(number)
            ids = torch.randint(0, raw["vocab_size"], (prompt + DECODE_STEPS,), generator=generator)
            made[number] = Case(number, model.path, model.raw, prompt, max(chunk, prompt // 20), ids)
        return made[number]

    return get


_report = defaultdict(list)


@pytest.fixture
def report():
    """`report(title, value)`: the largest value of each title is printed at the end of the run."""
    return lambda title, value: _report[title].append(value)


def pytest_terminal_summary(terminalreporter):
    if _report:
        terminalreporter.section("parity with transformers")
        for title, values in _report.items():
            terminalreporter.write_line(f"{title}: at most {max(values):.3g} over {len(values)} runs")
