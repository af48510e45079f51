"""The host's copy of every expert: packed blocks in one arena."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch

from engine import arena
from engine.checkpoint.reader import Checkpoint
from engine.experts.fill import ExpertReader, fill
from engine.models.config import MixtralConfig
from engine.progress import CancelToken, ProgressCallback, ignore_progress
from kernels.cpu import ExpertShape
from kernels.formats import WeightFormat

_ALIGNMENT = 4096


class ExpertBank:
    """All experts of a model in host memory, each one packed block (see `kernels` for the layout)."""

    def __init__(self, config: MixtralConfig, weight_format: WeightFormat = WeightFormat.BF16) -> None:
        self.config = config
        self.shape = ExpertShape(config.hidden_size, config.intermediate_size, weight_format)
        self._stride = -(-self.shape.nbytes // _ALIGNMENT) * _ALIGNMENT
        count = config.num_layers * config.num_experts
        self.arena = arena.allocate(self._stride * count)
        self._layers = self.arena.view(config.num_layers, config.num_experts, self._stride).unbind(0)
        self._blocks = [
            self.arena[start : start + self.shape.nbytes]
            for start in range(0, self._stride * count, self._stride)
        ]

    def block(self, layer: int, expert: int) -> torch.Tensor:
        """The packed block of an expert, uint8 [shape.nbytes]; a view of the arena."""
        return self._blocks[layer * self.config.num_experts + expert]

    def layer(self, layer: int) -> torch.Tensor:
        """All blocks of a layer, uint8 [experts, stride]; each row begins with an expert's block."""
        return self._layers[layer]

    def fill(
        self,
        checkpoint: Checkpoint,
        *,
        threads: int = 2,
        progress: ProgressCallback = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> None:
        """Read every expert, quantise it if the bank is in 8 or 4 bits, and pack it, `threads` at a time.

        Raises:
            CheckpointError: a tensor is missing or unreadable, or a weight is not finite.
            Cancelled: between two parts of an expert.
        """
        reader = ExpertReader(checkpoint, self.shape)
        fill(
            list(all_experts(self.config)),
            lambda layer, expert, check: reader.read(layer, expert, self.block(layer, expert), check),
            threads,
            progress,
            cancel,
        )


def all_experts(config: MixtralConfig) -> Iterator[tuple[int, int]]:
    """Every (layer, expert) of a model, layer by layer."""
    return product(range(config.num_layers), range(config.num_experts))
