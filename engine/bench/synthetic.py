"""A model of random weights, as large as the memory allows, loaded as a real one but for the files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from engine.bench.random_block import random_block
from engine.bench.random_tensors import RandomTensors
from engine.budget import LOADING_THREADS
from engine.checkpoint.inspect import ModelInfo
from engine.experts.bank import ExpertBank, all_experts
from engine.experts.fill import fill
from engine.gpu_format import dense_in_8_bits
from engine.models.loader import LoadedModel, assemble, compute_device, number_format
from engine.models.weights import load_dense
from engine.options import LoadOptions
from engine.placement import Placement
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from kernels.cpu import CpuPool, Isa

# Experts that differ; the others are copies of them in memory of their own, which is all that caches see.
_DISTINCT = 4
_COPY = 16 << 20  # bytes between two looks whether to go on
_SEED = 4


def make_model(
    info: ModelInfo,
    options: LoadOptions,
    placement: Placement | None = None,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
    *,
    isa: Isa | None = None,
    expert_device: torch.device | None = None,
    keep_residents: bool = True,
) -> LoadedModel:
    """As `engine.models.loader.load_model`, with weights that are drawn: 90 GB take about a minute.

    Their root mean square is about Mixtral's, so activations stay in the range that they have there.
    Raises HardwareError, MemoryFullError, and Cancelled, after which everything is freed.
    """
    device = compute_device(options.device)
    pool = CpuPool(options.threads, isa)
    try:
        weights = load_dense(
            RandomTensors(info.config),
            info.config,
            device,
            pool,
            number_format=number_format(info),
            in_8_bits=dense_in_8_bits(number_format(info).itemsize, options.expert_format),
            progress=progress,
            cancel=cancel,
        )
        return assemble(
            info,
            weights,
            BankFiller(max(2, min(LOADING_THREADS, pool.threads)), progress, cancel),
            placement,
            options,
            pool,
            device,
            expert_device=expert_device,
            keep_residents=keep_residents,
        )
    except BaseException:
        pool.close()
        raise


class BankFiller:
    """Gives every expert of a bank memory of its own with random weights, `threads` experts at a time."""

    def __init__(self, threads: int, progress: ProgressCallback, cancel: CancelToken | None) -> None:
        self._threads = threads
        self._progress = progress
        self._cancel = cancel

    def __call__(
        self, bank: ExpertBank, first: npt.NDArray[np.bool_] | None, filled: Callable[[int, int], None]
    ) -> None:
        """Fill it: those that `first` names before the others; `filled` hears of each that is there.

        Raises Cancelled between two pieces of an expert.
        """
        originals = self._draw(bank)

        def copy(layer: int, expert: int, check: Callable[[], None]) -> None:
            # A layer later the same experts follow one another from another one on.
            source = originals[(layer * (bank.config.num_experts + 1) + expert) % len(originals)]
            target = bank.block(layer, expert).numpy()
            for start in range(0, len(source), _COPY):
                check()
                np.copyto(target[start : start + _COPY], source[start : start + _COPY])
            filled(layer, expert)

        order = list(all_experts(bank.config))
        if first is not None:
            order.sort(key=lambda item: not first[item])
        fill(order, copy, self._threads, self._progress, self._cancel)

    def _draw(self, bank: ExpertBank) -> list[npt.NDArray[np.uint8]]:
        """The experts that the others are copies of."""
        generator = torch.Generator().manual_seed(_SEED)
        count = min(_DISTINCT, bank.config.num_layers * bank.config.num_experts)
        drawn = []
        for done in range(count):
            if self._cancel is not None:
                self._cancel.raise_if_cancelled()
            self._progress(Progress("Drawing weights", done, count, "experts"))
            drawn.append(random_block(bank.shape, generator).numpy())
        return drawn
