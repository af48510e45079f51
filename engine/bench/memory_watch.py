"""What this process takes of RAM and of the GPU's memory, now and at most."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from engine.units import KIB


@dataclass(frozen=True)
class MemoryFigures:
    """Bytes. `gpu_context` is what CUDA and its libraries take beside the allocator's `gpu_allocator` peak.

    The figures of the GPU are 0 without one; `gpu_context` counts other programs too that came meanwhile.
    """

    ram_now: int
    ram_peak: int
    arena: int
    gpu_allocator: int = 0
    gpu_context: int = 0
    gpu_budget: int = 0

    @property
    def gpu_peak(self) -> int:
        """Everything on the GPU at its peak."""
        return self.gpu_allocator + self.gpu_context

    @property
    def within_budget(self) -> bool:
        """Whether the GPU's peak is within the budget; so it is without a GPU."""
        return self.gpu_peak <= self.gpu_budget


class MemoryWatch:
    """Reads the figures. `free_before`: the GPU's free bytes before CUDA was first used in this process."""

    def __init__(self, device: torch.device, free_before: int, budget: int) -> None:
        self._device = device
        self._free_before = free_before
        self._budget = budget

    def figures(self, arena: int) -> MemoryFigures:
        """The figures now; `arena` is the bytes of the experts in RAM."""
        now = psutil.Process().memory_info().rss
        if self._device.type != "cuda":
            return MemoryFigures(now, max(now, peak_ram()), arena)
        free, _ = torch.cuda.mem_get_info(self._device)
        held = torch.cuda.memory_reserved(self._device)
        return MemoryFigures(
            ram_now=now,
            ram_peak=max(now, peak_ram()),
            arena=arena,
            gpu_allocator=torch.cuda.max_memory_reserved(self._device),
            gpu_context=max(0, self._free_before - free - held),
            gpu_budget=self._budget,
        )

    def gpu_now(self) -> int:
        """Bytes that the allocator holds now; 0 without a GPU."""
        return torch.cuda.memory_reserved(self._device) if self._device.type == "cuda" else 0


def peak_ram(status: Path = Path("/proc/self/status")) -> int:
    """The most RAM that this process had at a time, in bytes; 0 where the system does not tell."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * KIB
    return 0
