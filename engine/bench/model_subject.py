"""Loading what a benchmark measures: a real model, or one of random weights with set routing."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from engine import vram
from engine.bench.memory_watch import MemoryWatch
from engine.bench.model_rates import gpu_read_rate
from engine.bench.model_request import Subject
from engine.bench.synthetic import make_model
from engine.calibration.kernels import choose_kernels
from engine.calibration.quick import measure_costs
from engine.errors import ShortageError
from engine.estimate import other_read
from engine.gpu_format import dense_in_8_bits, gpu_value_bytes
from engine.hardware import Hardware, detect
from engine.kernel_choice import KernelChoice, apply_kernels
from engine.latency import LatencyModel
from engine.models.loader import LoadedModel, compute_device, load_model
from engine.models.routing_source import RoutingSource
from engine.placement import Placement, place_popular, place_uniform
from engine.plan import Plan, make_plan
from engine.progress import CancelToken, Progress, ProgressCallback
from kernels.formats import WeightFormat

# As the engine: NVML's order of GPUs is CUDA's, so that the plan is for the card that computes.
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


@dataclass
class LoadedSubject:
    """A model ready to be measured. Close it to free its threads."""

    subject: Subject
    hardware: Hardware
    plan: Plan
    parts: LoadedModel
    placement: Placement
    watch: MemoryWatch
    gpu_rate: float | None  # bytes per second at which the GPU reads; None without one
    costs: LatencyModel | None = None  # what the policies decide by; None without a GPU
    kernels: KernelChoice | None = None  # what the pool uses, chosen as a calibration does

    def route(self, *, zipf: float, favourites: npt.NDArray[np.bool_] | None = None) -> None:
        """Set the routing of a model of random weights; a real one keeps its routers."""
        if self.subject.folder is None:
            config = self.parts.info.config
            self.parts.model.routing = RoutingSource(
                config.num_layers,
                config.num_experts,
                config.top_k,
                zipf=zipf,
                reuse=self.subject.reuse,
                seed=self.subject.seed,
                favourites=favourites,
            )

    @property
    def resident(self) -> npt.NDArray[np.bool_]:
        """bool [layers, experts]: whose weights live on the GPU."""
        return self.placement.resident

    @property
    def held_bytes(self) -> int:
        """Bytes of the experts in RAM."""
        bank = self.parts.bank
        return int(bank.held.sum()) * (bank.arena.numel() // bank.held.size)

    @property
    def dense_bytes(self) -> float:
        """Bytes that a token reads of the weights beside the experts: all but the table of embeddings."""
        info, bits = self.parts.info, 16.0
        if self.plan.has_gpu:
            value_bytes = gpu_value_bytes(info)
            in_8_bits = dense_in_8_bits(value_bytes, self.parts.bank.shape.format)
            bits = WeightFormat.INT8.bits if in_8_bits else 8 * value_bytes
        return other_read(info.config, bits)

    def machine(self) -> dict[str, object]:
        """What the figures depend on, for reports."""
        gpu = self.hardware.gpu if self.plan.has_gpu else None
        return {
            "cpu": self.hardware.cpu.name,
            "threads": self.parts.pool.threads,
            "isa": str(self.parts.pool.isa),
            "gpu": None if gpu is None else gpu.name,
        }

    def __enter__(self) -> LoadedSubject:
        return self

    def __exit__(self, *_: object) -> None:
        self.parts.close()


def load_subject(
    subject: Subject, progress: ProgressCallback, cancel: CancelToken, *, even: bool = False
) -> LoadedSubject:
    """Load or make the model as the planner says. `subject.options` names the context that is needed.

    `even`: equally many experts of each layer are put on the GPU, as by popularities that are alike.

    Raises what `load_model` raises, and ShortageError unless `options.force`.
    """
    progress(Progress("Checking the computer"))
    info = subject.info()
    options = subject.options
    hardware = detect(subject.folder or Path.cwd())
    if options.device == "cpu":
        hardware = hardware.without_gpu()
    free_before = 0 if hardware.gpu is None else hardware.gpu.vram_free
    if hardware.has_gpu:
        hardware = vram.start_cuda(hardware)
    plan = make_plan(hardware, info, options, measured_later=True)
    _check_room(subject, plan)
    if even:
        placement = place_popular(np.ones((plan.layers, plan.experts)), plan.expert_slots)
    else:
        placement = place_uniform(plan.layers, plan.experts, plan.expert_slots)
    device = torch.device("cpu") if not plan.has_gpu else compute_device(plan.device)
    gpu_rate = gpu_read_rate(device) if device.type == "cuda" else None
    budget = plan.vram_budget if plan.has_gpu else None
    chosen = replace(options, device=plan.device, threads=plan.threads, vram_budget=budget)
    placed = placement if plan.has_gpu else None
    if subject.folder is None:
        parts = make_model(info, chosen, placed, progress, cancel, keep_residents=plan.keep_residents)
    else:
        kept = plan.keep_residents
        parts = load_model(subject.folder, chosen, placed, progress, cancel, keep_residents=kept)
    watch = MemoryWatch(parts.model.device, free_before, plan.vram_budget)
    loaded = LoadedSubject(subject, hardware, plan, parts, placement, watch, gpu_rate)
    loaded.route(zipf=subject.zipf)
    try:
        _wait_until_pinned(loaded, progress, cancel)
        _use_fastest_kernels(loaded, progress, cancel)
        if plan.has_gpu:
            progress(Progress("Measuring what experts cost"))
            loaded.costs = measure_costs(parts, cancel.raise_if_cancelled)
    except BaseException:
        parts.close()
        raise
    return loaded


def _check_room(subject: Subject, plan: Plan) -> None:
    """Raise ShortageError if memory is short; a model of random weights can be made smaller."""
    try:
        plan.requirements.check(force=subject.options.force)
    except ShortageError as error:
        if subject.folder is not None:
            raise
        smaller = "Choose fewer --layers, --precision int8 or int4, or --preset starter."
        raise ShortageError(error.what, why=error.why, action=smaller) from error


def _use_fastest_kernels(loaded: LoadedSubject, progress: ProgressCallback, cancel: CancelToken) -> None:
    """Figures are to be those of a calibrated engine, which uses the kernels that it found fastest."""
    progress(Progress("Choosing the fastest kernels"))
    pool, exact = loaded.parts.pool, loaded.subject.options.exact_experts
    loaded.kernels, _, _ = choose_kernels(loaded.parts, exact=exact, check=cancel.raise_if_cancelled)
    apply_kernels(loaded.kernels, pool, exact=exact)


def _wait_until_pinned(loaded: LoadedSubject, progress: ProgressCallback, cancel: CancelToken) -> None:
    """What goes on in the background after loading would be in the figures."""
    registration = loaded.parts.bank.registration
    if registration is not None:
        progress(Progress("Pinning memory"))
        while not registration.wait(0.1):
            cancel.raise_if_cancelled()
