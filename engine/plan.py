"""The plan for one model on one machine: where experts go, what it needs, how fast it will be. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.requirements import Requirements


@dataclass(frozen=True)
class Plan:
    """What will happen when the model is loaded, decided before it is.

    `device` is "cpu" or "cuda"; `has_gpu` says whether a real GPU takes part, and only then `expert_slots`
    (how many experts get a place in its memory, of `layers` × `experts`) is above zero. `decode_range` is the
    expected speed in tokens per second (low, high); `basis` says where it comes from, `assumptions` on what.
    `notes` are sentences the user should read before going on.
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

    def lines(self) -> tuple[str, ...]:
        """The plan for people: placement, speed, needs item by item, notes."""
        needs = [line for need in self.requirements.needs for line in need.lines()]
        head = (f"{self.model_name} on {self.device_name}", self.placement_text())
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
        }
