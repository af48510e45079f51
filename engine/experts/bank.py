"""The host's copy of every expert: packed blocks in one arena."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import torch

from engine import arena
from engine.checkpoint.reader import Checkpoint
from engine.experts.fill import ExpertReader, fill
from engine.experts.register import Pinner, Registration
from engine.models.config import MixtralConfig
from engine.progress import CancelToken, ProgressCallback, ignore_progress
from engine.units import format_bytes
from kernels.cpu import ExpertShape
from kernels.formats import WeightFormat

_ALIGNMENT = 4096


class ExpertBank:
    """The experts of a model in host memory, each one packed block (see `kernels` for the layout).

    `held` is bool [layers, experts]: False for those that were given up by `drop`.
    """

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
        self.held: npt.NDArray[np.bool_] = np.ones((config.num_layers, config.num_experts), dtype=np.bool_)
        self._unreturned = np.zeros_like(self.held)  # given up, and not taken back by the system
        self.registration: Registration | None = None
        self._pin_order = np.full(self.held.shape, count)  # each block's number in the registration

    def block(self, layer: int, expert: int) -> torch.Tensor:
        """The packed block of an expert, uint8 [shape.nbytes]; a view of the arena."""
        return self._blocks[layer * self.config.num_experts + expert]

    def layer(self, layer: int) -> torch.Tensor:
        """All blocks of a layer, uint8 [experts, stride]; each row begins with an expert's block."""
        return self._layers[layer]

    def drop(self, layer: int, expert: int) -> None:
        """Give an expert's memory back to the system, as it is on the GPU; its block reads as zeros then.

        Where the system does not take it back it stays in use, which `note` says. Not once `pin` was called:
        pinned pages cannot be given back.
        """
        if self.registration is not None:
            raise RuntimeError("the experts' memory is pinned")
        self._unreturned[layer, expert] = not arena.give_back(self.layer(layer)[expert])
        self.held[layer, expert] = False

    @property
    def note(self) -> str:
        """A sentence for the user if memory that is not needed could not be given back; empty otherwise."""
        nbytes = int(np.count_nonzero(self._unreturned)) * self._stride
        if not nbytes:
            return ""
        return (
            f"The system does not take back {format_bytes(nbytes)} of memory, of experts that are on the "
            "graphics card: other programs have less of it."
        )

    def pin(self, pinner: Pinner) -> Registration:
        """Pin what is held, in the background, layer by layer; ends with `close`."""
        order = [item for item in all_experts(self.config) if self.held[item]]
        for number, item in enumerate(order):
            self._pin_order[item] = number
        self.registration = Registration([self.layer(layer)[expert] for layer, expert in order], pinner)
        return self.registration

    def pinned(self, layer: int, expert: int) -> bool:
        """Whether an expert's block can be copied by the GPU directly."""
        return self.registration is not None and self.registration.done(int(self._pin_order[layer, expert]))

    def close(self) -> None:
        """Unpin the memory; no copy from it may be on its way. Closing twice is harmless."""
        if self.registration is not None:
            self.registration.close()

    def fill(
        self,
        checkpoint: Checkpoint,
        *,
        threads: int = 2,
        progress: ProgressCallback = ignore_progress,
        cancel: CancelToken | None = None,
        first: npt.NDArray[np.bool_] | None = None,
        filled: Callable[[int, int], None] = lambda layer, expert: None,
    ) -> None:
        """Read every expert, quantise it if the bank is in 8 or 4 bits, and pack it, `threads` at a time.

        Those that `first`, bool [layers, experts], names come before the others. `filled` is called with each
        that is there, by the thread that read it; several may call at a time.

        Raises:
            CheckpointError: a tensor is missing or unreadable, or a weight is not finite.
            Cancelled: between two parts of an expert.
        """
        reader = ExpertReader(checkpoint, self.shape)

        def read(layer: int, expert: int, check: Callable[[], None]) -> None:
            reader.read(layer, expert, self.block(layer, expert), check)
            filled(layer, expert)

        order = list(all_experts(self.config))
        if first is not None:
            order.sort(key=lambda item: not first[item])
        fill(order, read, threads, progress, cancel)


def all_experts(config: MixtralConfig) -> Iterator[tuple[int, int]]:
    """Every (layer, expert) of a model, layer by layer."""
    return product(range(config.num_layers), range(config.num_experts))
