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
    """Reads the memory of the first GPU through NVML; a missing or failing driver means no reading."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        self._failed = False

    def read(self, ours: int) -> MemoryReading | None:
        """Total and used bytes; `ours` is what this program's engine says it took."""
        if self._failed:
            return None
        if self._nvml is None:
            import pynvml

            self._nvml = pynvml
        try:
            if self._handle is None:
                self._nvml.nvmlInit()
                self._handle = self._nvml.nvmlDeviceGetHandleByIndex(0)
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
        except self._nvml.NVMLError as error:
            log.info("no GPU memory reading: %s", error)
            self._failed = True
            return None
        return MemoryReading(int(memory.total), int(memory.used), min(ours, int(memory.used)))
