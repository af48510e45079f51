"""The plan for one model on one machine: where experts go, what it needs, how fast it will be. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.budget import VramBudget, ram_need, vram_budget
from engine.checkpoint.inspect import ModelInfo
from engine.errors import HardwareError
from engine.estimate import estimate_decode
from engine.hardware.facts import Hardware
from engine.options import LoadOptions
from engine.placement import place_calibrated
from engine.precision import precision_text
from engine.profile import Profile
from engine.prompt_memory import CPU_CHUNK
from engine.requirements import Need, Requirements
from engine.step_time import decode_step_seconds
from engine.units import format_bytes
from kernels.formats import WeightFormat

# A calibrated prediction is shown with this margin around it, or with the profile's own error if larger.
_CALIBRATED_MARGIN = 0.1

_POLICY_TEXTS = {
    "makespan": "The CPU and the graphics card work on a layer's other experts at the same time.",
    "paper": "Each other expert runs on the CPU, or is copied to the graphics card where that is faster.",
    "cpu": "All other experts run on the CPU.",
    "stream": "All other experts are copied to the graphics card when they are needed.",
}


@dataclass(frozen=True)
class Plan:
    """What will happen when the model is loaded, decided before it is.

    `device` is "cpu" or "cuda"; `has_gpu` says whether a real GPU takes part, and only then `expert_slots`
    (how many experts get a place in its memory, of `layers` × `experts`) is above zero. `decode_range` is the
    expected speed in tokens per second (low, high); `basis` says where it comes from, `assumptions` on what.
    `notes` are sentences the user should read before going on. `precision` is what the experts are held in;
    `best_precision` is the best one for which RAM suffices, "" if it never does. `prefill_chunk` is how many
    tokens of a prompt are read at a time, `keep_residents` whether experts in graphics memory stay in RAM.
    """

    model_name: str
    device: str
    has_gpu: bool
    device_name: str
    policy: str
    layers: int
    experts: int
    expert_slots: int
    vram_budget: int
    context_length: int
    threads: int
    requirements: Requirements
    decode_range: tuple[float, float]
    basis: str
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    precision: str = LoadOptions.precision
    best_precision: str = ""
    prefill_chunk: int = CPU_CHUNK
    keep_residents: bool = True

    @property
    def total_experts(self) -> int:
        """Experts of the whole model."""
        return self.layers * self.experts

    def speed_text(self) -> str:
        """The expected decode speed in words: "about 12–18 tokens per second"."""
        low, high = self.decode_range
        if high >= 10:
            return f"about {low:.0f}–{high:.0f} tokens per second"
        return f"about {low:.1f}–{high:.1f} tokens per second"

    def placement_text(self) -> str:
        """Where the experts will live, in one sentence."""
        if not self.has_gpu:
            return f"All {self.total_experts} experts run on the CPU: no graphics card is used."
        rest = self.total_experts - self.expert_slots
        return f"{self.expert_slots} of {self.total_experts} experts in graphics memory, {rest} in memory."

    def policy_text(self) -> str:
        """How the experts are run that are not in graphics memory, in one sentence; empty without a GPU."""
        return _POLICY_TEXTS[self.policy] if self.has_gpu else ""

    def precision_text(self) -> str:
        """What the experts are held in and what that costs, in words."""
        text = precision_text(WeightFormat(self.precision))
        if self.has_gpu and self.precision != WeightFormat.BF16:
            bits = WeightFormat(self.precision).bits
            text += f" In graphics memory, too, a weight takes {bits:.1f} bits."
        return text

    def lines(self) -> tuple[str, ...]:
        """The plan for people: placement, speed, needs item by item, notes."""
        needs = [line for need in self.requirements.needs for line in need.lines()]
        head = (
            f"{self.model_name} on {self.device_name}",
            self.placement_text(),
            *([self.policy_text()] if self.has_gpu else []),
            self.precision_text(),
        )
        return (*head, f"Expected speed: {self.speed_text()} ({self.basis}).", *needs, *self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "model": self.model_name,
            "device": self.device,
            "device_name": self.device_name,
            "has_gpu": self.has_gpu,
            "policy": self.policy,
            "layers": self.layers,
            "experts": self.experts,
            "expert_slots": self.expert_slots,
            "vram_budget": self.vram_budget,
            "context_length": self.context_length,
            "threads": self.threads,
            "requirements": self.requirements.to_dict(),
            "decode_tokens_per_second": list(self.decode_range),
            "basis": self.basis,
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
            "precision": self.precision,
            "best_precision": self.best_precision,
            "prefill_chunk": self.prefill_chunk,
            "keep_residents": self.keep_residents,
        }


def make_plan(
    hardware: Hardware,
    info: ModelInfo,
    options: LoadOptions,
    profile: Profile | None = None,
    *,
    measured_later: bool = False,
) -> Plan:
    """Decide how `info` would be loaded on `hardware`; nothing is refused here, `Plan.requirements` tells.

    `profile` must be a valid one for this machine, model and precision; with it, the speed is predicted from
    what was measured. `measured_later`: costs will be measured once the model is loaded, as benchmarks do, so
    no policy waits for a calibration.

    Raises `HardwareError` if the options ask for CUDA and no GPU can be used.
    """
    notes: list[str] = []
    context = options.context_for(info.context_length)
    vram = _vram(hardware, info, options, context, notes)
    cuda = vram is not None
    gpu = hardware.gpu if cuda else None
    slots = 0 if vram is None else vram.slots
    threads = options.threads or hardware.cpu.default_threads
    rams = {
        weight_format: _ram(hardware, info, options, context, weight_format, cuda=cuda)
        for weight_format in WeightFormat
    }
    ram, kept = rams[options.expert_format]
    needs = [ram]
    if not kept:
        notes.append(
            "Experts in graphics memory are not kept in memory as well: both together would not fit."
        )
    if vram is not None:
        needs.append(vram.need())
    calibrated = profile is not None and profile.latency.has_gpu == cuda
    if cuda and options.policy in ("makespan", "paper") and not (calibrated or measured_later):
        notes.append(
            "Until this computer has been calibrated, experts that are not in graphics memory run on the CPU."
        )
    if not cuda and options.policy not in ("cpu", LoadOptions.policy):  # chosen, and in vain
        notes.append(f"Without a graphics card the policy “{options.policy}” has no effect.")
    if profile is not None and calibrated:
        speed, assumptions = _calibrated(profile, slots, options.policy), tuple[str, ...]()
        basis = "from this computer's calibration"
    else:
        estimate = estimate_decode(
            hardware,
            info.config,
            slots,
            options.policy,
            cuda=cuda,
            threads=threads,
            weight_format=options.expert_format,
        )
        speed, assumptions = estimate.tokens_per_second, estimate.assumptions
        basis = "estimated from memory speed, before calibration"
    return Plan(
        model_name=info.name,
        device="cuda" if cuda else "cpu",
        has_gpu=cuda,
        device_name=gpu.name if gpu is not None else hardware.cpu.name,
        policy=options.policy,
        layers=info.config.num_layers,
        experts=info.config.num_experts,
        expert_slots=slots,
        vram_budget=0 if vram is None else vram.available,
        context_length=context,
        threads=threads,
        requirements=Requirements(tuple(needs), f"load {info.name}"),
        decode_range=speed,
        basis=basis,
        assumptions=assumptions,
        notes=tuple(notes),
        precision=options.precision,
        best_precision=next((str(better) for better, (need, _) in rams.items() if need.fits), ""),
        prefill_chunk=CPU_CHUNK if vram is None else vram.prefill_chunk,
        keep_residents=kept,
    )


def _ram(
    hardware: Hardware,
    info: ModelInfo,
    options: LoadOptions,
    context: int,
    weight_format: WeightFormat,
    *,
    cuda: bool,
) -> tuple[Need, bool]:
    """The need of RAM with experts in a format, and whether the GPU's are kept there: if they have room."""

    def need(given_back: int) -> Need:
        return ram_need(
            hardware.memory,
            info,
            context,
            cuda=cuda,
            reserve=options.ram_reserve,
            weight_format=weight_format,
            given_back=given_back,
        )

    everything = need(0)
    if everything.fits or not cuda or hardware.gpu is None:
        return everything, True
    slots = vram_budget(hardware.gpu, info, context, options.vram_budget, weight_format).slots
    return (need(slots), False) if slots else (everything, True)


def _vram(
    hardware: Hardware, info: ModelInfo, options: LoadOptions, context: int, notes: list[str]
) -> VramBudget | None:
    """The GPU's share, or None if the model will run on the CPU alone; says why in `notes`."""
    if options.device == "cpu":
        if hardware.has_gpu:
            notes.append("The graphics card is not used: the CPU was chosen.")
        return None
    gpu = hardware.gpu
    if gpu is None:
        if options.device == "cuda":
            raise HardwareError(
                "No graphics card can be used.",
                why=hardware.gpu_message,
                action="Choose the CPU, or let the program choose.",
            )
        notes.append(hardware.gpu_message or "No graphics card: all work runs on the CPU.")
        return None
    budget = vram_budget(gpu, info, context, options.vram_budget, options.expert_format)
    if options.vram_budget is not None and options.vram_budget > gpu.vram_free:
        notes.append(
            f"Only {format_bytes(gpu.vram_free)} of graphics memory are free now, less than the budget of "
            f"{format_bytes(options.vram_budget)}."
        )
    if not budget.fits and options.device == "auto":
        notes.append(
            f"The graphics card is not used: {format_bytes(budget.need().missing)} of its memory are "
            "missing for the parts that every token needs."
        )
        return None
    return budget


def _calibrated(profile: Profile, slots: int, policy: str) -> tuple[float, float]:
    resident = place_calibrated(profile.popularity, slots, profile.latency.cpu_lat(1)).resident
    seconds = decode_step_seconds(profile.latency, resident, profile.popularity, policy)
    margin = max(_CALIBRATED_MARGIN, abs(profile.prediction_error))
    return 1 / (seconds * (1 + margin)), 1 / (seconds / (1 + margin))
