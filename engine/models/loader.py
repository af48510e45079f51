"""From a model folder to a model that can be run: the pool, the weights, the bank, the placement."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from engine import vram
from engine.budget import LOADING_THREADS
from engine.checkpoint.inspect import ModelInfo, inspect_model
from engine.checkpoint.reader import Checkpoint
from engine.costs import ExpertCosts
from engine.drift import Drift
from engine.errors import HardwareError
from engine.executor import ExpertExecutor
from engine.experts.bank import ExpertBank
from engine.experts.placer import Placer
from engine.experts.register import CudaPinner
from engine.experts.slots import GpuExperts
from engine.gpu_format import dense_in_8_bits, gpu_value_bytes
from engine.kernel_choice import KernelChoice, apply_kernels
from engine.models.mixtral import MixtralModel
from engine.models.weights import DenseWeights, load_dense
from engine.options import LoadOptions
from engine.placement import Placement, place_nothing
from engine.progress import CancelToken, ProgressCallback, ignore_progress
from engine.stats import HitCounters
from kernels.cpu import CpuPool, Isa
from kernels.gpu import support

# Fills a bank: the experts that the table names first, and calls the function with each that is there.
FillBank = Callable[[ExpertBank, npt.NDArray[np.bool_] | None, Callable[[int, int], None]], None]


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run, and the parts that others measure and show. Close it to free what it holds."""

    info: ModelInfo
    model: MixtralModel
    bank: ExpertBank
    residents: GpuExperts | None  # None without a GPU
    executor: ExpertExecutor
    counters: HitCounters
    pool: CpuPool

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user about what did not go as it should, as far as that shows by now."""
        registration, device = self.bank.registration, self.model.device
        notes = [self.bank.note, "" if registration is None else registration.note]
        why = support.why_not(device) if device.type == "cuda" else ""
        if why:
            notes.append(f"The graphics card is slower than it could be, because {why}.")
        return tuple(note for note in notes if note)

    def close(self) -> None:
        """End all threads, unpin the arena, and free the experts' places; the model cannot be run then."""
        self.pool.close()
        on_gpu = self.model.device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize(self.model.device)  # copies from the arena may be on their way
        self.bank.close()
        if self.residents is not None:
            self.residents.close()
        if on_gpu:
            vram.unlimit(self.model.device)

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
    keep_residents: bool = True,
) -> LoadedModel:
    """Read a model and put its experts where the placement says.

    Args:
        path: the model's folder.
        options: policy, threads and device. A `vram_budget` bounds what is taken of a GPU, whatever happens;
            whoever made the placement has divided it.
        placement: which experts live on the GPU; None for none of them.
        progress: told about layers and experts loaded.
        cancel: heard between layers and between parts of experts.
        costs: the calibrated latency model, for the policies "makespan" and "paper".
        kernels: what a calibration chose for the experts; None for the defaults.
        isa: the kernels' instruction set; None for the best one.
        expert_device: where placed experts go if not on the compute device: the CPU as a second "device"
            lets mixed placements be tried without a GPU.
        gpu_format: what a GPU computes in; None for the format that suits the model's size.
        keep_residents: whether experts on the GPU stay in RAM, too.

    Raises:
        CheckpointError: the folder holds no usable model.
        HardwareError: a GPU was asked for and there is none.
        MemoryFullError: not enough memory.
        torch.OutOfMemoryError: not enough memory on the GPU, or within `options.vram_budget`.
        Cancelled: everything loaded so far is freed.
    """
    options = options or LoadOptions()
    device = compute_device(options.device)
    info = inspect_model(path)
    config = info.config
    gpu_format = gpu_format or number_format(info)
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
                in_8_bits=dense_in_8_bits(gpu_format.itemsize, options.expert_format),
                progress=progress,
                cancel=cancel,
            )

            def fill(
                bank: ExpertBank, first: npt.NDArray[np.bool_] | None, filled: Callable[[int, int], None]
            ) -> None:
                threads = max(2, min(LOADING_THREADS, pool.threads))  # two: one reads while the other packs
                bank.fill(
                    checkpoint,
                    threads=threads,
                    progress=progress,
                    cancel=cancel,
                    first=first,
                    filled=filled,
                )

            return assemble(
                info,
                weights,
                fill,
                placement,
                options,
                pool,
                device,
                costs=costs,
                expert_device=expert_device,
                gpu_format=gpu_format,
                keep_residents=keep_residents,
            )
    except BaseException:
        pool.close()
        raise


def number_format(info: ModelInfo) -> torch.dtype:
    """The number format that suits a model on a GPU: bf16, or float32 for a small one."""
    return torch.float32 if gpu_value_bytes(info) == 4 else torch.bfloat16


def assemble(
    info: ModelInfo,
    weights: DenseWeights,
    fill: FillBank,
    placement: Placement | None,
    options: LoadOptions,
    pool: CpuPool,
    device: torch.device,
    *,
    costs: ExpertCosts | None = None,
    expert_device: torch.device | None = None,
    gpu_format: torch.dtype | None = None,
    keep_residents: bool = True,
) -> LoadedModel:
    """The second half of loading: the experts, by `fill`, and all parts put together; see `load_model`.

    Places on the GPU are taken first: a shortage there shows before anything large was read. Residents come
    first of all experts and are copied as soon as they are there; what need not stay in RAM is given back
    at once, so that it never holds more than the others and the few that are being read. What then is in RAM
    is pinned in the background if the device is a GPU. Whoever calls closes `pool` if this raises.
    """
    config = info.config
    residents: GpuExperts | None = None
    with ExitStack() as undo:
        if device.type == "cuda" and options.vram_budget is not None:
            undo.callback(vram.unlimit, device)  # or what is loaded next would have to do with this budget
            vram.limit(device, options.vram_budget)
        if device.type == "cuda" or expert_device is not None:
            place = expert_device or device
            residents = GpuExperts(
                config,
                place,
                (placement or place_nothing(config.num_layers, config.num_experts)).resident,
                packed_format=options.expert_format,
                number_format=None if place.type == "cpu" else gpu_format or number_format(info),
            )
        bank = ExpertBank(config, options.expert_format)
        if residents is None:
            fill(bank, None, lambda layer, expert: None)
        else:
            fill(bank, residents.resident, Placer(bank, residents, keep=keep_residents))
        counters = HitCounters(config.num_layers, config.num_experts)
        drift = None if costs is None else Drift(costs)
        executor = ExpertExecutor(bank, pool, counters, gpu=residents, policy=options.policy, costs=drift)
        model = MixtralModel(config, weights, executor, device)
        if device.type == "cuda" and expert_device is None:
            bank.pin(CudaPinner(device))
        undo.pop_all()
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
