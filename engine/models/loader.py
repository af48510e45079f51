"""From a model folder to a model that can be run: the pool, the weights, the bank, the placement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.budget import LOADING_THREADS
from engine.checkpoint.inspect import ModelInfo, inspect_model
from engine.checkpoint.reader import Checkpoint
from engine.costs import ExpertCosts
from engine.errors import HardwareError
from engine.executor import ExpertExecutor
from engine.experts.bank import ExpertBank, all_experts
from engine.experts.slots import GpuExperts
from engine.gpu_format import gpu_value_bytes
from engine.kernel_choice import KernelChoice, apply_kernels
from engine.models.mixtral import MixtralModel
from engine.models.weights import load_dense
from engine.options import LoadOptions
from engine.placement import Placement, place_nothing
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.stats import HitCounters
from kernels.cpu import CpuPool, Isa


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run, and the parts that others measure and show. Close it to free the threads."""

    info: ModelInfo
    model: MixtralModel
    bank: ExpertBank
    residents: GpuExperts | None  # None without a GPU
    executor: ExpertExecutor
    counters: HitCounters
    pool: CpuPool

    def close(self) -> None:
        """End the CPU pool's threads; the model cannot be run afterwards."""
        self.pool.close()

    def __enter__(self) -> LoadedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_model(
    path: str | Path,
    options: LoadOptions | None = None,
    placement: Placement | None = None,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
    *,
    costs: ExpertCosts | None = None,
    kernels: KernelChoice | None = None,
    isa: Isa | None = None,
    expert_device: torch.device | None = None,
    gpu_format: torch.dtype | None = None,
) -> LoadedModel:
    """Read a model and put its experts where the placement says.

    Args:
        path: the model's folder.
        options: policy, threads and device; budgets were spent by whoever made the placement.
        placement: which experts live on the GPU; None for none of them.
        progress: told about layers and experts loaded.
        cancel: heard between layers and between parts of experts.
        costs: the calibrated latency model, for the policies "makespan" and "paper".
        kernels: what a calibration chose for the experts; None for the defaults.
        isa: the kernels' instruction set; None for the best one.
        expert_device: where placed experts go if not on the compute device: the CPU as a second "device"
            lets mixed placements be tried without a GPU.
        gpu_format: what a GPU computes in; None for the format that suits the model's size.

    Raises:
        CheckpointError: the folder holds no usable model.
        HardwareError: a GPU was asked for and there is none.
        ShortageError: not enough memory.
        Cancelled: everything loaded so far is freed.
    """
    options = options or LoadOptions()
    device = compute_device(options.device)
    info = inspect_model(path)
    config = info.config
    if gpu_format is None:
        gpu_format = torch.float32 if gpu_value_bytes(info) == 4 else torch.bfloat16
    pool = CpuPool(options.threads, isa)
    try:
        apply_kernels(kernels, pool, exact=options.exact_experts)
        with Checkpoint(info.path) as checkpoint:
            weights = load_dense(
                checkpoint,
                config,
                device,
                pool,
                number_format=gpu_format,
                progress=progress,
                cancel=cancel,
            )
            bank = ExpertBank(config, options.expert_format)
            bank.fill(
                checkpoint,
                threads=max(2, min(LOADING_THREADS, pool.threads)),  # two: one reads while the other packs
                progress=progress,
                cancel=cancel,
            )
        counters = HitCounters(config.num_layers, config.num_experts)
        residents = None
        if device.type == "cuda" or expert_device is not None:
            if placement is None:
                placement = place_nothing(config.num_layers, config.num_experts)
            place = expert_device or device
            experts_format = None if place.type == "cpu" else gpu_format
            residents = GpuExperts(
                config,
                place,
                placement.resident,
                number_format=experts_format,
                packed_format=options.expert_format,
            )
            _place(bank, residents, progress, cancel)
    except BaseException:
        pool.close()
        raise
    executor = ExpertExecutor(bank, pool, counters, gpu=residents, policy=options.policy, costs=costs)
    model = MixtralModel(config, weights, executor, device)
    return LoadedModel(info, model, bank, residents, executor, counters, pool)


def compute_device(name: str) -> torch.device:
    """The device that "auto", "cpu" or "cuda" means on this machine.

    Raises:
        HardwareError: "cuda" without a usable GPU.
    """
    if name == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if name == "cuda":
        raise HardwareError(
            "No usable NVIDIA GPU was found.",
            why="PyTorch sees no CUDA device: there is none, its driver is missing, or this PyTorch was "
            "built for the CPU only.",
            action="Choose the device auto or cpu, or install the GPU's driver and a CUDA build of PyTorch.",
        )
    return torch.device("cpu")


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
