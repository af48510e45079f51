"""Put the machine's parts together."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

from engine.hardware.bandwidth import measure_read_bandwidth
from engine.hardware.cpu import detect_cpu
from engine.hardware.facts import Hardware
from engine.hardware.gpu import detect_gpus
from engine.hardware.memory import detect_disk, detect_memory
from engine.hardware.torch_build import find_torch_build
from engine.paths import data_dir
from kernels.cgroup import read_limits


def detect(folder: Path | None = None, *, measure_memory: bool = False) -> Hardware:
    """Find out what this machine is; `folder` (default: the data folder) picks the disk to look at.

    Takes some ten milliseconds. `measure_memory` also measures the read bandwidth, in about a second (some
    seconds on a virtual machine that is given memory as it uses it) and with up to 2 GiB of memory. Raises
    `HardwareError` for an impossible `FIDDLER_MAX_ISA`; a GPU that cannot be used is a state, not an error.
    """
    limits = read_limits()
    gpu = detect_gpus(find_torch_build())
    hardware = Hardware(
        cpu=detect_cpu(limits),
        gpus=gpu.gpus,
        memory=detect_memory(limits),
        disk=detect_disk(folder or data_dir()),
        os_name=f"{platform.system()} {platform.release()}".strip(),
        gpu_state=gpu.state,
        gpu_message=gpu.message,
    )
    return with_bandwidth(hardware) if measure_memory else hardware


def with_bandwidth(hardware: Hardware) -> Hardware:
    """The same machine with its memory's read bandwidth measured (about a second)."""
    bandwidth = measure_read_bandwidth(hardware.cpu.default_threads, hardware.memory.available)
    return replace(hardware, memory=replace(hardware.memory, read_bandwidth=bandwidth))
