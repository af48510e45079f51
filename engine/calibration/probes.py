"""Probes of the CPU's experts and of whole decode steps, taken in place: inside decode steps of the model.

An expert timed in a loop of its own is faster than in a model: its threads are awake, and what surrounds it
stays in the caches. With the starter model on two AVX2 cores such a loop promised 25 ms for a step that took
43. So each probe runs decode steps and takes the times of their parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import cast

import torch

from engine.accounting import Part
from engine.calibration.stand_ins import TimedCpuExperts
from engine.calibration.timing import Timing, measure
from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.experts.bank import ExpertBank
from engine.models.mixtral import MixtralModel

# Of one expert, from decode to a prompt of a thousand tokens that all experts of a layer share.
TOKEN_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# Of one expert in a long chunk of a prompt, for what CPU and GPU divide: activations leave the caches, and
# 16 cores with AMX take a quarter longer than two counts up to 256 foretell.
PROMPT_TOKENS = 1024
_PROMPT, _STEPS = 64, 96  # tokens in the cache when decode steps are timed, and how many steps at most
_WARM_UP = 2
_PROBE_SECONDS, _DECODE_SECONDS = 0.5, 1.5
_LEAST_STEPS = 3
_ACCOUNTED = 17  # steps, of which the account has at least two: on a GPU it has every eighth
_EXPERT_PARTS = (Part.CPU_EXPERTS, Part.GPU_EXPERTS, Part.COPIES)
_LEAST_SECONDS = 1e-6  # what remains of a step, however noisy its parts were measured


class DecodeProbes:
    """Times of a decode step and its parts, after a prompt of (at most) 64 tokens."""

    def __init__(self, model: MixtralModel, prompt: Sequence[int]) -> None:
        self._model = model
        room = model.config.max_position_embeddings
        self._prompt = list(prompt[: min(_PROMPT, room // 2)])
        self._steps = min(_STEPS, room - len(self._prompt))

    def cpu_expert(self, tokens: int) -> Timing:
        """One expert with `tokens` tokens on the CPU: over the steps, the median of a step's mean."""
        timed = TimedCpuExperts(self._model.executor, tokens)
        experts = self._model.config.num_layers * self._model.config.top_k
        step = self._decoder(self._with(timed))

        def one() -> float:
            timed.seconds = 0.0
            step()
            return timed.seconds / experts

        return self._repeat(one, _PROBE_SECONDS)

    def without_experts(self) -> Timing:
        """A step less its experts: attention, routers, norms, logits, and with a GPU the way to the host."""
        if self._model.device.type == "cuda":
            return self.beside_experts()
        timed = TimedCpuExperts(self._model.executor, 1)
        step = self._decoder(self._with(timed))

        def one() -> float:
            timed.seconds = 0.0
            begin = time.perf_counter()
            step()
            return time.perf_counter() - begin - timed.seconds

        return self._repeat(one, _PROBE_SECONDS)

    def beside_experts(self) -> Timing:
        """The same from real steps, less what the executor's account says that experts took.

        For steps that are captured as graphs and cannot be run with a stand-in. The CPU runs what is missing,
        so that nothing else overlaps with the experts than what is resident.
        """
        executor = self._model.executor
        policy, executor.policy = executor.policy, "cpu"
        try:
            step = self._decoder(self._model)
            for _ in range(_WARM_UP):
                step()
            before = executor.account.snapshot()
            most = self._steps - _WARM_UP  # of the context
            timing = measure(step, seconds=_DECODE_SECONDS, least=min(_ACCOUNTED, most), most=most, warm_up=0)
            spent = executor.account.snapshot().since(before)
        finally:
            executor.policy = policy
        experts = sum(spent.parts[part] for part in _EXPERT_PARTS) / max(1, spent.steps)
        return Timing(max(timing.seconds - experts, _LEAST_SECONDS), timing.spread)

    def whole(self) -> Timing:
        """A real step, experts where the policy puts them."""
        step = self._decoder(self._model)

        def one() -> float:
            begin = time.perf_counter()
            step()
            return time.perf_counter() - begin

        return self._repeat(one, _DECODE_SECONDS)

    def _with(self, timed: TimedCpuExperts) -> MixtralModel:
        model = self._model
        # A stand-in with the one method that the model calls.
        return MixtralModel(model.config, model.weights, cast(ExpertExecutor, timed), model.device)

    def _decoder(self, model: MixtralModel) -> Callable[[], None]:
        """Read the prompt; returns the step that continues it greedily by one token."""
        cache = model.new_cache(len(self._prompt) + self._steps)

        def read(tokens: list[int], phase: Phase) -> int:
            logits = model.forward(torch.tensor(tokens), cache, phase=phase)
            assert logits is not None
            return int(logits[-1].argmax())

        token = read(self._prompt, Phase.PREFILL)

        def step() -> None:
            nonlocal token
            token = read([token], Phase.DECODE)

        return step

    def _repeat(self, one: Callable[[], float], seconds: float) -> Timing:
        """The values that `one` returns, over about `seconds` and at least three steps."""
        for _ in range(_WARM_UP):
            one()
        values: list[float] = []
        end = time.perf_counter() + seconds
        most = self._steps - _WARM_UP
        while len(values) < most and (len(values) < _LEAST_STEPS or time.perf_counter() < end):
            values.append(one())
        return Timing.of(values)


def expert_blocks(bank: ExpertBank) -> list[torch.Tensor]:
    """The packed experts in a random but repeatable order: those that are held, as others read as zeros.

    All of them if none is held.
    """
    order = shuffled_experts(bank.config.num_layers, bank.config.num_experts)
    return [bank.block(*item) for item in [item for item in order if bank.held[item]] or order]


def shuffled_experts(layers: int, experts: int, seed: int = 0) -> list[tuple[int, int]]:
    """Every (layer, expert) in a random but repeatable order, for probes that take one at a time."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(layers * experts, generator=generator).tolist()
    return [divmod(index, experts) for index in order]
