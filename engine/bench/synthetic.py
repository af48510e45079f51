"""A model of random weights, as large as the memory allows, loaded as a real one but for the files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from engine.bench.random_block import random_block
from engine.bench.random_tensors import RandomTensors
from engine.budget import LOADING_THREADS
from engine.checkpoint.inspect import ModelInfo
from engine.executor import ExpertExecutor
from engine.experts.bank import ExpertBank, all_experts
from engine.experts.fill import fill
from engine.experts.slots import GpuExperts
from engine.gpu_format import gpu_value_bytes
from engine.models.loader import LoadedModel, compute_device
from engine.models.mixtral import MixtralModel
from engine.models.weights import load_dense
from engine.options import LoadOptions
from engine.placement import Placement
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.stats import HitCounters
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
) -> LoadedModel:
    """As `engine.models.loader.load_model`, with weights that are drawn: 90 GB take about a minute.

    Their root mean square is about Mixtral's, so activations stay in the range that they have there.
    Raises HardwareError, ShortageError, and Cancelled, after which everything is freed.
    """
    device = compute_device(options.device)
    config = info.config
    number_format = torch.float32 if gpu_value_bytes(info) == 4 else torch.bfloat16
    pool = CpuPool(options.threads, isa)
    try:
        weights = load_dense(
            RandomTensors(config),
            config,
            device,
            pool,
            number_format=number_format,
            progress=progress,
            cancel=cancel,
        )
        bank = ExpertBank(config, options.expert_format)
        fill_bank(bank, max(2, min(LOADING_THREADS, pool.threads)), progress, cancel)
        residents = None
        if placement is not None and (device.type == "cuda" or expert_device is not None):
            place = expert_device or device
            residents = GpuExperts(
                config,
                place,
                placement.resident,
                number_format=None if place.type == "cpu" else number_format,
                packed_format=options.expert_format,
            )
            _place(bank, residents, progress, cancel)
    except BaseException:
        pool.close()
        raise
    counters = HitCounters(config.num_layers, config.num_experts)
    executor = ExpertExecutor(bank, pool, counters, gpu=residents, policy=options.policy)
    model = MixtralModel(config, weights, executor, device)
    return LoadedModel(info, model, bank, residents, executor, counters, pool)


def fill_bank(bank: ExpertBank, threads: int, progress: ProgressCallback, cancel: CancelToken | None) -> None:
    """Give every expert of the bank memory of its own with random weights, `threads` experts at a time.

    Raises Cancelled between two pieces of an expert.
    """
    generator = torch.Generator().manual_seed(_SEED)
    count = min(_DISTINCT, bank.config.num_layers * bank.config.num_experts)
    originals = []
    for done in range(count):
        if cancel is not None:
            cancel.raise_if_cancelled()
        progress(Progress("Drawing weights", done, count, "experts"))
        originals.append(random_block(bank.shape, generator).numpy())

    def copy(layer: int, expert: int, check: Callable[[], None]) -> None:
        source = originals[(layer * bank.config.num_experts + expert + layer) % count]
        target = bank.block(layer, expert).numpy()
        for start in range(0, len(source), _COPY):
            check()
            np.copyto(target[start : start + _COPY], source[start : start + _COPY])

    fill(list(all_experts(bank.config)), copy, threads, progress, cancel)


def _place(
    bank: ExpertBank, residents: GpuExperts, progress: ProgressCallback, cancel: CancelToken | None
) -> None:
    """Copy the placed experts to their device."""
    placed = [item for item in all_experts(bank.config) if residents.resident[item]]
    for done, (layer, expert) in enumerate(placed):
        if cancel is not None:
            cancel.raise_if_cancelled()
        place = residents.place(layer, expert)
        assert place is not None
        residents.store(place, bank.block(layer, expert).to(residents.device))
        progress(Progress("Copying experts to the GPU", done + 1, len(placed), "experts"))
