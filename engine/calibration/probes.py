"""Probes of the CPU's side and of whole decode steps. Each really runs what it measures.

They use the loaded model's own weights, threads and buffers, so what is measured is what will run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import cast

import torch

from engine.calibration.stand_ins import SkippedExperts
from engine.calibration.timing import Timing, measure
from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.models.config import MixtralConfig
from engine.models.loader import LoadedModel
from engine.models.mixtral import MixtralModel
from kernels.cpu import ExpertJob

# The paper's range; beyond 64 tokens an expert's time on the CPU is a straight line.
TOKEN_COUNTS = (1, 2, 4, 8, 16, 32, 64)
_PROMPT, _STEPS = 64, 96  # tokens in the cache when decode steps are timed, and how many at most


def shuffled_experts(config: MixtralConfig, seed: int = 0) -> list[tuple[int, int]]:
    """Every (layer, expert) in a random but repeatable order.

    Taken one after the other, no cache that could hold a few experts serves the next repetition: a decode
    step finds its experts in memory too.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(config.num_layers * config.num_experts, generator=generator).tolist()
    return [divmod(index, config.num_experts) for index in order]


class CpuProbes:
    """Times of one expert on the CPU pool, by its number of tokens."""

    def __init__(self, parts: LoadedModel, experts: list[tuple[int, int]]) -> None:
        self._bank = parts.bank
        self._pool = parts.pool
        self._experts: Iterator[tuple[int, int]] = itertools.cycle(experts)

    def expert(self, tokens: int) -> Timing:
        """One expert with `tokens` tokens, another expert each time."""
        x = torch.randn(tokens, self._bank.shape.hidden)
        out = torch.zeros_like(x)
        rows, weights = torch.arange(tokens, dtype=torch.int32), torch.ones(tokens)

        def run() -> None:
            block = self._bank.block(*next(self._experts))
            self._pool.run_experts(x, [ExpertJob(block, rows, weights)], self._bank.shape, out)

        return measure(run)


class DecodeProbes:
    """Times of a decode step after a prompt of (at most) 64 tokens, with and without its experts."""

    def __init__(self, model: MixtralModel, prompt: Sequence[int]) -> None:
        self._model = model
        room = model.config.max_position_embeddings
        self._prompt = list(prompt[: min(_PROMPT, room // 2)])
        self._steps = min(_STEPS, room - len(self._prompt) - 1)

    def without_experts(self) -> Timing:
        """Attention, routers, norms and logits, and with a GPU the link to the host and back."""
        model = self._model
        # A stand-in with the one method that the model calls.
        skipping = cast(ExpertExecutor, SkippedExperts(model.executor))
        return self._measure(MixtralModel(model.config, model.weights, skipping, model.device))

    def whole(self) -> Timing:
        """A real step: the model continues its prompt greedily."""
        return self._measure(self._model)

    def _measure(self, model: MixtralModel) -> Timing:
        cache = model.new_cache(len(self._prompt) + self._steps)

        def read(tokens: list[int], phase: Phase) -> int:
            logits = model.forward(torch.tensor(tokens), cache, phase=phase)
            assert logits is not None
            return int(logits[-1].argmax())

        token = read(self._prompt, Phase.PREFILL)

        def step() -> None:
            nonlocal token
            token = read([token], Phase.DECODE)

        warm_up = min(2, self._steps - 1)
        most = self._steps - warm_up
        return measure(step, seconds=1.5, least=min(8, most), most=most, warm_up=warm_up)
