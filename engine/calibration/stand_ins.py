"""Stand-ins for the executor while a model is measured: one skips the experts, one notes who was chosen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.experts.link import CudaLink, DirectLink, HostLink


class SkippedExperts:
    """Runs no expert, but moves the routing and the activations as a step with CPU experts does."""

    def __init__(self, executor: ExpertExecutor) -> None:
        config = executor.bank.config
        self._on_gpu = executor.gpu is not None
        self._link: HostLink = DirectLink(config.hidden_size)
        if executor.gpu is not None and executor.gpu.device.type == "cuda":
            self._link = CudaLink(config.hidden_size, config.top_k, executor.gpu.device)

    def run(
        self,
        layer: int,
        x: torch.Tensor,
        ids: torch.Tensor,
        weights: torch.Tensor,
        phase: Phase,
        out: torch.Tensor,
    ) -> None:
        """As `ExpertExecutor.run`, without the experts: adds zeros."""
        if self._on_gpu:
            self._link.send_activations(x)
            self._link.routing(ids, weights)
            self._link.activations(len(x))
            self._link.add_results(out)


class CountedRouting:
    """Runs everything as usual and counts how many tokens chose each expert.

    `counts` is int64 [layers, experts], `tokens` the number of tokens seen by the first layer.
    """

    def __init__(self, executor: ExpertExecutor) -> None:
        self._executor = executor
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
