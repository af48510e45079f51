"""Times of experts on the CPU by themselves, call after call, from all over the memory they lie in."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import torch

from engine.calibration.probes import expert_blocks
from engine.calibration.timing import Timing, measure
from engine.models.loader import LoadedModel
from kernels.cpu import ExpertJob

# Between two calls, as a layer's attention is between its experts and the next layer's. The pool's threads
# have gone to rest by then, as they have in a decode step.
_PAUSE = 200e-6
_QUICK = 256  # tokens: calls with more take long, and vary less
_PART = 8  # the part of an expert, one in so many, that the cost of starting is found with


class CpuExperts:
    """Calls of the pool with as many experts as a token chooses, other ones each time."""

    def __init__(self, parts: LoadedModel) -> None:
        bank = parts.bank
        self._pool, self._shape = parts.pool, bank.shape
        self._blocks: Iterator[torch.Tensor] = itertools.cycle(expert_blocks(bank))
        self.at_once = parts.info.config.top_k

    def call(self, tokens: int, experts: int, panels: int | None = None) -> Callable[[], None]:
        """A call that runs so many experts with `tokens` tokens each, or only their first panels."""
        rows = torch.arange(tokens, dtype=torch.int32)
        weights = torch.full((tokens,), 1e-3)
        x = torch.randn(tokens, self._shape.hidden, generator=torch.Generator().manual_seed(tokens))
        out = torch.zeros_like(x)
        share = (0, panels or self._shape.panels)

        def run() -> None:
            jobs = [ExpertJob(next(self._blocks), rows, weights, share) for _ in range(experts)]
            self._pool.run_experts(x, jobs, self._shape, out)

        return run

    def one(self, tokens: int) -> Timing:
        """One expert with `tokens` tokens, as part of a call with all experts of a token."""
        least = 7 if tokens <= _QUICK else 3
        return self._timed(self.call(tokens, self.at_once), self.at_once, least)

    def start(self) -> Timing:
        """What a call takes that does not depend on how much of an expert is meant."""
        panels = max(1, self._shape.panels // _PART)
        part = self._timed(self.call(1, 1, panels), 1)
        whole = self._timed(self.call(1, 1), 1)
        return intercept(part, whole, panels / self._shape.panels)

    @staticmethod
    def _timed(call: Callable[[], None], experts: int, least: int = 7) -> Timing:
        def seconds() -> float:
            time.sleep(_PAUSE)
            begin = time.perf_counter()
            call()
            return (time.perf_counter() - begin) / experts

        return measure(seconds, least=least)


def intercept(part: Timing, whole: Timing, share: float) -> Timing:
    """The time left for nothing at all, from those of a share (below 1) of something and of all of it."""
    if share >= 1:
        return Timing(0.0, 0.0)
    seconds = (part.seconds - share * whole.seconds) / (1 - share)
    return Timing(max(0.0, seconds), max(part.spread, whole.spread))
