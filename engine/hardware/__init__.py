"""What this machine is: CPU, GPU, memory, disk. Torch-free."""

from __future__ import annotations

from engine.hardware.detect import detect, with_bandwidth
from engine.hardware.facts import CpuInfo, DiskInfo, GpuInfo, GpuState, Hardware, MemoryInfo

__all__ = [
    "CpuInfo",
    "DiskInfo",
    "GpuInfo",
    "GpuState",
    "Hardware",
    "MemoryInfo",
    "detect",
    "with_bandwidth",
]
