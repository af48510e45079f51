"""What is known about a machine: frozen facts as plain numbers, with sentences for people. No detection."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from engine.isa_words import isa_words
from engine.units import GIB, format_bytes, format_rate
from kernels.topology import default_threads

# Transfer rate in bytes per second of one PCIe lane, by generation, after line coding (8b/10b up to 2.0,
# 128b/130b from 3.0, FLIT in 6.0): PCI-SIG's figures. Copies reach about 85% of it.
PCIE_LANE_RATE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}


@dataclass(frozen=True)
class CpuInfo:
    """The processor and what this process may use of it.

    `isas` are the kernel levels this CPU and operating system can run, in rising order; `isa` the one in use
    (`FIDDLER_MAX_ISA` may cap it). `performance_cores` equals `physical_cores` unless the CPU is hybrid.
    `usable_cores` is the number of physical performance cores left by CPU affinity and the cgroup's quota.
    `quota` is the cgroup's limit in CPUs (None: no limit).
    """

    name: str
    isa: str
    isas: tuple[str, ...]
    features: tuple[str, ...]
    logical_cores: int
    physical_cores: int
    performance_cores: int
    usable_cores: int
    quota: float | None = None

    @property
    def hybrid(self) -> bool:
        """Whether the CPU has efficiency cores beside its performance cores."""
        return self.performance_cores < self.physical_cores

    @property
    def default_threads(self) -> int:
        """Threads of the CPU pool unless told otherwise: the usable cores, on larger machines all but one."""
        return default_threads(self.usable_cores)

    def summary(self) -> str:
        """One line: name, cores, instruction set."""
        cores = f"{self.physical_cores} cores" if self.physical_cores != 1 else "1 core"
        if self.hybrid:
            efficiency = self.physical_cores - self.performance_cores
            cores += f" ({self.performance_cores} performance, {efficiency} efficiency)"
        if self.usable_cores < self.performance_cores:
            cores += f", {self.usable_cores} usable by this program"
        return f"{self.name}, {cores}, {isa_words(self.isa)}"


@dataclass(frozen=True)
class GpuInfo:
    """One NVIDIA GPU as NVML sees it. Memory in bytes; link figures are None where NVML does not tell.

    `index` is NVML's (PCI order). The current link may be slower than the maximum while the GPU idles.
    `cuda_bytes` is what CUDA itself was seen to take in this process, counted as free; 0 before it ran.
    """

    index: int
    name: str
    uuid: str
    vram_total: int
    vram_free: int
    driver: str
    compute_capability: tuple[int, int]
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    cuda_bytes: int = 0

    @property
    def pcie_bandwidth(self) -> float | None:
        """Bytes per second and direction of the link at its best, by specification; None if unknown."""
        generation, width = self.pcie_generation_max, self.pcie_width_max
        if generation not in PCIE_LANE_RATE or not width:
            return None
        return PCIE_LANE_RATE[generation] * width

    def summary(self) -> str:
        """One line: name, memory, link, driver."""
        parts = [self.name, f"{format_bytes(self.vram_free)} of {format_bytes(self.vram_total)} free"]
        if self.pcie_generation_max and self.pcie_width_max:
            parts.append(f"PCIe {self.pcie_generation_max} ×{self.pcie_width_max}")
        major, minor = self.compute_capability
        parts += [f"compute capability {major}.{minor}", f"driver {self.driver}"]
        return ", ".join(parts)


class GpuState(StrEnum):
    """Whether a GPU can be used, and if not, why not."""

    READY = "ready"
    NO_DRIVER = "no_driver"  # no NVIDIA driver, so probably no NVIDIA GPU
    NO_GPU = "no_gpu"  # a driver without a GPU
    BROKEN = "broken"  # the driver does not answer properly
    HIDDEN = "hidden"  # CUDA_VISIBLE_DEVICES hides every GPU
    TORCH_WITHOUT_CUDA = "torch_without_cuda"
    DRIVER_TOO_OLD = "driver_too_old"
    TOO_OLD = "too_old"  # the GPU's architecture is no longer supported


@dataclass(frozen=True)
class MemoryInfo:
    """RAM in bytes. `total` and `available` respect the cgroup's limit (`limit`, None: none).

    `may_grow`: a virtual machine that is given more memory as it uses it, so `total` is a lower bound.
    `read_bandwidth` in bytes per second by `CpuInfo.default_threads` threads, None until measured.
    """

    total: int
    available: int
    limit: int | None = None
    may_grow: bool = False
    read_bandwidth: float | None = None

    def summary(self) -> str:
        """One line: available and total, bandwidth if measured."""
        text = f"{format_bytes(self.available)} of {format_bytes(self.total)} available"
        if self.limit is not None:
            text += " (limited by a container or session)"
        if self.may_grow:
            text += " (this virtual machine is given more as it needs it)"
        if self.read_bandwidth is not None:
            text += f", read at {format_rate(self.read_bandwidth)}"
        return text


@dataclass(frozen=True)
class DiskInfo:
    """The disk that holds the data folder `path`; `free` is what this user may still write. Bytes."""

    path: str
    total: int
    free: int

    def summary(self) -> str:
        """One line: free and total."""
        return f"{format_bytes(self.free)} of {format_bytes(self.total)} free at {self.path}"


@dataclass(frozen=True)
class Hardware:
    """Everything the plan needs to know about this machine."""

    cpu: CpuInfo
    gpus: tuple[GpuInfo, ...]
    memory: MemoryInfo
    disk: DiskInfo
    os_name: str
    gpu_state: GpuState = GpuState.NO_DRIVER
    gpu_message: str = ""  # for people: why no GPU is used, or what to know about the one that is

    @property
    def gpu(self) -> GpuInfo | None:
        """The GPU that will be used, or None where none can be."""
        return self.gpus[0] if self.gpu_state is GpuState.READY and self.gpus else None

    @property
    def has_gpu(self) -> bool:
        """Whether a GPU can be used. A GPU that exists but cannot be used does not count."""
        return self.gpu is not None

    def without_gpu(self) -> Hardware:
        """The same machine with its GPU left out, for `device="cpu"`."""
        if not self.has_gpu:
            return self
        return replace(
            self,
            gpu_state=GpuState.HIDDEN,
            gpu_message="The graphics card is switched off in the settings: all work runs on the CPU.",
        )

    def fingerprint_parts(self, threads: int | None = None) -> dict[str, str]:
        """What makes another calibration necessary when it changes, by the names people know.

        `threads` is the size of the CPU pool where it is not the default.

        Free memory, disk, and the size of RAM are left out: they change from day to day, or do not change how
        fast anything runs. The link's maximum counts, not what an idling GPU negotiated.
        """
        gpu = self.gpu
        if gpu is None:
            graphics = "none used"
        else:
            graphics = f"{gpu.name}, {round(gpu.vram_total / GIB)} GiB"
            if gpu.pcie_generation_max and gpu.pcie_width_max:
                graphics += f", PCIe {gpu.pcie_generation_max} ×{gpu.pcie_width_max}"
        return {
            "processor": self.cpu.name,
            "instruction set": isa_words(self.cpu.isa),
            "CPU threads": str(threads or self.cpu.default_threads),
            "graphics card": graphics,
        }

    def fingerprint(self, threads: int | None = None) -> str:
        """Sixteen hex digits that stay the same as long as a calibration stays valid."""
        return fingerprint_of(self.fingerprint_parts(threads))

    def summary(self) -> tuple[str, ...]:
        """Lines for people, one per part of the machine."""
        lines = [f"Processor: {self.cpu.summary()}", f"Memory: {self.memory.summary()}"]
        lines += [f"Graphics card: {gpu.summary()}" for gpu in self.gpus]
        if self.gpu_message:
            lines.append(self.gpu_message)
        lines += [f"Disk: {self.disk.summary()}", f"System: {self.os_name}"]
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the fingerprint and the derived facts a reader wants."""
        return {**asdict(self), "has_gpu": self.has_gpu, "fingerprint": self.fingerprint()}


def fingerprint_of(parts: dict[str, str]) -> str:
    """Sixteen hex digits of the parts, in any order."""
    text = "\n".join(f"{key}={value}" for key, value in sorted(parts.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
