"""Stand-ins for the executor while a model is measured: one times experts in place, one counts choices."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import torch

from engine.accounting import TimeAccount
from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.stats import HitCounters


class TimedCpuExperts:
    """In decode, runs the chosen experts on the CPU with `tokens` copies of the token, and takes the time.

    `seconds` is the time spent with experts since it was last set to zero, the preparation of their jobs
    included. Everything around them is done as a real step does it. For models on the CPU: beside a GPU a
    step is graphs, and experts are timed by themselves.
    """

    gpu = None  # steps as graphs are for real executors

    def __init__(self, executor: ExpertExecutor, tokens: int) -> None:
        config = executor.bank.config
        counters = HitCounters(config.num_layers, config.num_experts)
        self._cpu = ExpertExecutor(executor.bank, executor.pool, counters)
        self.account = TimeAccount()  # nobody reads it
        self._tokens = tokens
        self.seconds = 0.0

    def run(
        self,
        layer: int,
        x: torch.Tensor,
        ids: torch.Tensor,
        weights: torch.Tensor,
        phase: Phase,
        out: torch.Tensor,
    ) -> None:
        """As `ExpertExecutor.run`; a prompt is read once, one token of decode `tokens` times."""
        if phase is Phase.DECODE and self._tokens > 1:
            x, ids, weights = (each.repeat(self._tokens, 1) for each in (x, ids, weights))
        result = torch.zeros(x.shape)
        begin = time.perf_counter()
        self._cpu.run(layer, x, ids, weights, phase, result)
        self.seconds += time.perf_counter() - begin
        out += result[: len(out)]


class CountedRouting:
    """Runs everything as usual and counts how many tokens chose each expert.

    `counts` is int64 [layers, experts], `tokens` the number of tokens seen by the first layer.
    """

    gpu = None  # steps as graphs do not come here to be counted

    def __init__(self, executor: ExpertExecutor) -> None:
        self._executor = executor
        self.account = TimeAccount()  # nobody reads it
        config = executor.bank.config
        self.counts: npt.NDArray[np.int64] = np.zeros((config.num_layers, config.num_experts), dtype=np.int64)
        self.tokens = 0

    def run(
        self,
        layer: int,
        x: torch.Tensor,
        ids: torch.Tensor,
        weights: torch.Tensor,
        phase: Phase,
        out: torch.Tensor,
    ) -> None:
        """As `ExpertExecutor.run`."""
        chosen = ids.reshape(-1).cpu().numpy()
        self.counts[layer] += np.bincount(chosen, minlength=self.counts.shape[1])
        if layer == 0:
            self.tokens += len(x)
        self._executor.run(layer, x, ids, weights, phase, out)

    def popularity(self) -> npt.NDArray[np.float64]:
        """The chance that a token chooses each expert, float64 [layers, experts]; rows sum to top-k."""
        return self.counts / max(1, self.tokens)
