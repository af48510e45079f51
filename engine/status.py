"""What a loaded engine says about itself, for the panel and the wizard. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class EngineStatus:
    """A snapshot of a loaded model. Memory in bytes.

    `residency` is bool [layers, experts]: True where the expert's weights are in a real GPU's memory (all
    False without one: a simulated placement is never reported). `device` is the compute device in words (the
    GPU's name, or the CPU's). `vram_used` counts what this program took; `vram_budget` what it may take.
    `notes` are sentences for the user about choices that had no effect or need saying. `stale_calibration`
    says why a saved calibration could not be used (hardware changed, model changed, file unreadable).
    `gpu_index` is NVML's number of the GPU in use. `precision` is what the experts are held in in memory.
    `prediction_error` and `refits` say how well the latency model foretells layers (`events.Prediction`).
    """

    model_name: str
    layers: int
    experts: int
    residency: npt.NDArray[np.bool_]
    ram_used: int
    vram_used: int
    vram_budget: int
    threads: int
    isa: str
    policy: str
    device: str
    has_gpu: bool
    context_length: int
    context_used: int = 0
    is_starter: bool = False
    calibrated: bool = False
    stale_calibration: str = ""
    notes: tuple[str, ...] = ()
    gpu_index: int | None = None
    precision: str = "bf16"
    prediction_error: float | None = None
    refits: int = 0

    @property
    def resident_experts(self) -> int:
        """How many experts are in the GPU's memory."""
        return int(self.residency.sum())
