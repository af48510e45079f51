"""How a model is to be loaded: policy, budgets, context length, threads, device, precision. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from engine.errors import EngineError
from engine.precision import PRECISIONS
from kernels.formats import WeightFormat

PolicyName = Literal["makespan", "paper", "cpu", "stream"]
DeviceName = Literal["auto", "cpu", "cuda"]

POLICIES: tuple[str, ...] = get_args(PolicyName)
DEVICES: tuple[str, ...] = get_args(DeviceName)
DEFAULT_CONTEXT_LENGTH = 4096


class OptionError(EngineError):
    """A load option has a value that nothing could be loaded with."""


@dataclass(frozen=True)
class LoadOptions:
    """How to load a model. Checked on creation; `None` leaves a choice to the program.

    `policy` decides where an expert without a place on the GPU runs: "makespan" (on the CPU and the GPU at
    the same time, so that each layer is finished first), "paper" (Algorithm 1 of Fiddler), both by the
    latency model, "cpu" (never copied), "stream" (always copied). `vram_budget` in bytes (None: from what is
    free now), `ram_reserve` in bytes is left to other programs (None: the planner's default).
    `context_length` in tokens (None: the model's, at most 4096). `threads` is the size of the CPU pool (None:
    the physical cores this process may use, on larger machines all but one). `device` "auto" takes a GPU when
    there is one. `force` loads although RAM or VRAM looks short. `precision` is what the experts are held in:
    "bf16" as in the files, "int8" or "int4" quantised while loading. `exact_activations` forbids what a
    calibration may choose where it is faster: rounding activations to 8 bits for experts in 8 or 4 bits.
    """

    policy: str = "makespan"
    vram_budget: int | None = None
    context_length: int | None = None
    threads: int | None = None
    device: str = "auto"
    force: bool = False
    ram_reserve: int | None = None
    precision: str = "bf16"
    exact_activations: bool = False

    def __post_init__(self) -> None:
        checks = (
            (self.policy in POLICIES, "policy", self.policy, f"one of {', '.join(POLICIES)}"),
            (self.device in DEVICES, "device", self.device, f"one of {', '.join(DEVICES)}"),
            (self.precision in PRECISIONS, "precision", self.precision, f"one of {', '.join(PRECISIONS)}"),
            (_at_least(self.vram_budget, 0), "vram_budget", self.vram_budget, "0 bytes or more"),
            (_at_least(self.ram_reserve, 0), "ram_reserve", self.ram_reserve, "0 bytes or more"),
            (_at_least(self.context_length, 16), "context_length", self.context_length, "16 tokens or more"),
            (_at_least(self.threads, 1), "threads", self.threads, "1 or more"),
        )
        for holds, name, value, allowed in checks:
            if not holds:
                raise OptionError(f"{name} cannot be {value}.", action=f"Choose {allowed}.")

    @property
    def expert_format(self) -> WeightFormat:
        """`precision` as the kernels call it."""
        return WeightFormat(self.precision)

    @property
    def exact_experts(self) -> bool:
        """Whether `exact_activations` changes anything: for experts in bf16 nothing is rounded to 8 bits."""
        return self.exact_activations and self.expert_format is not WeightFormat.BF16

    def context_for(self, model_context: int) -> int:
        """Tokens the KV cache will hold for a model made for `model_context` tokens."""
        if self.context_length is None:
            return min(model_context, DEFAULT_CONTEXT_LENGTH)
        return min(model_context, self.context_length)


def _at_least(value: int | None, least: int) -> bool:
    return value is None or value >= least
