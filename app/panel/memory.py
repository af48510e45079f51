"""How much RAM and VRAM is in use now. NVML is asked only when there is a GPU to ask about."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import psutil

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemoryReading:
    """Bytes. `ours` is this program's part of `used`."""

    total: int
    used: int
    ours: int


def read_ram() -> MemoryReading:
    """Main memory: what other programs and the system need counts as used, caches do not."""
    memory = psutil.virtual_memory()
    ours = psutil.Process().memory_info().rss
    return MemoryReading(memory.total, max(ours, memory.total - memory.available), ours)


class GpuMemory:
    """Reads a GPU's memory through NVML; a missing or failing driver means no reading."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: dict[int, Any] = {}  # by NVML's number of the GPU
        self._failed = False

    def read(self, index: int, ours: int) -> MemoryReading | None:
        """Total and used bytes of the GPU that NVML numbers `index`; `ours` is what the engine took."""
        if self._failed:
            return None
        if self._nvml is None:
            import pynvml

            self._nvml = pynvml
        try:
            if not self._handles:
                self._nvml.nvmlInit()
            if index not in self._handles:
                self._handles[index] = self._nvml.nvmlDeviceGetHandleByIndex(index)
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handles[index])
        except self._nvml.NVMLError as error:
            log.info("no GPU memory reading: %s", error)
            self._failed = True
            return None
        return MemoryReading(int(memory.total), int(memory.used), min(ours, int(memory.used)))
