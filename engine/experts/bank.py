"""The host's copy of every expert: packed blocks in one arena, filled straight from the checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice, product

import torch

from engine import arena
from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.tensors import writable_bytes
from engine.models import tensors
from engine.models.config import MixtralConfig
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from kernels.cpu import ExpertShape, pack_expert

_ALIGNMENT = 4096


class ExpertBank:
    """All experts of a model in host memory, each one packed block (see `kernels` for the layout)."""

    def __init__(self, config: MixtralConfig) -> None:
        self.config = config
        self.shape = ExpertShape(config.hidden_size, config.intermediate_size)
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
        """Read and pack every expert, `threads` at a time; beside the arena each takes one expert's bytes.

        Raises:
            CheckpointError: a tensor is missing or unreadable.
            Cancelled: between two experts.
        """
        scratch = threading.local()

        def one(layer: int, expert: int) -> None:
            if not hasattr(scratch, "matrices"):
                hidden, inner = self.config.hidden_size, self.config.intermediate_size
                scratch.matrices = {
                    "w1": torch.empty(inner, hidden, dtype=torch.bfloat16),
                    "w3": torch.empty(inner, hidden, dtype=torch.bfloat16),
                    "w2": torch.empty(hidden, inner, dtype=torch.bfloat16),
                }
            for name, matrix in scratch.matrices.items():
                info = checkpoint.info(tensors.expert(layer, expert, name), tuple(matrix.shape))
                checkpoint.read_into(info, writable_bytes(matrix))
            matrices = scratch.matrices
            pack_expert(matrices["w1"], matrices["w3"], matrices["w2"], self.block(layer, expert))

        total = self.config.num_layers * self.config.num_experts
        work = all_experts(self.config)
        with ThreadPoolExecutor(threads, thread_name_prefix="bank") as pool:
            running: set[Future[None]] = set()
            for done in range(total):
                if cancel is not None:
                    cancel.raise_if_cancelled()  # the pool's exit waits for the few experts under way
                running |= {pool.submit(one, *item) for item in islice(work, threads + 1 - len(running))}
                finished, running = _first(running)
                finished.result()
                progress(Progress("Loading experts", done + 1, total, "experts"))


def _first(running: set[Future[None]]) -> tuple[Future[None], set[Future[None]]]:
    """One finished future of `running`, and the others."""
    finished = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
    return finished, running - {finished}


def all_experts(config: MixtralConfig) -> Iterator[tuple[int, int]]:
    """Every (layer, expert) of a model, layer by layer."""
    return product(range(config.num_layers), range(config.num_experts))
