"""How fast a model will decode, before anything was calibrated: bytes per token over bandwidth, as a range.

Decode is bound by reading weights. What is not known of a machine enters as a range, and each assumption is a
sentence in the result, so that nobody takes a guess for a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.hardware.facts import GpuInfo, Hardware
from engine.models.config import MixtralConfig
from engine.units import format_rate

# Share of the measured read bandwidth that the kernels reach while decoding, low and high. Sixteen AVX-512
# cores that read 98 GB/s plainly ran experts at 100 to 114; the low end is for a machine with other work.
_KERNEL_EFFICIENCY = (0.55, 1.1)
# Read bandwidth in bytes per second when it was not measured: a core reads 8 to 15 GB/s; two channels of DDR4
# or DDR5 give 35 to 80, a server's eight 80 to 200.
_CORE_RATE = (8e9, 15e9)
_DESKTOP_RATE, _SERVER_RATE = (25e9, 80e9), (60e9, 200e9)
_SERVER_CORES = 20
# Share of PCIe's specified rate that large pinned copies reach; without any figure, PCIe 3 ×4 to 3 ×16.
_PCIE_EFFICIENCY, _PCIE_UNKNOWN = (0.4, 0.87), (3e9, 13e9)
# Memory bandwidth of GPUs from laptops to servers.
_VRAM_RATE = (150e9, 1500e9)
# Time a layer takes beside its weights (attention, router, launches), high and low, in seconds.
_CPU_LAYER, _GPU_LAYER = (500e-6, 100e-6), (600e-6, 100e-6)
# How much more often than evenly the placed experts are chosen: Mixtral-8x7B with 56 of
# 256 experts: 1.1 to 1.27.
_POPULARITY_GAIN = (1.0, 1.3)


@dataclass(frozen=True)
class Estimate:
    """Decode speed in tokens per second, (low, high), and what was assumed."""

    tokens_per_second: tuple[float, float]
    assumptions: tuple[str, ...]


def estimate_decode(
    hardware: Hardware, config: MixtralConfig, slots: int, policy: str, *, cuda: bool, threads: int
) -> Estimate:
    """The range for one token at a short context; `slots` experts are in the GPU's memory."""
    assumptions = []
    cpu = _cpu_rate(hardware, threads)
    if hardware.memory.read_bandwidth is None:
        assumptions.append(
            f"Memory is taken to be read at {format_rate(cpu[0])} to {format_rate(cpu[1])}: not measured yet."
        )
    else:
        measured = format_rate(hardware.memory.read_bandwidth)
        assumptions.append(f"Memory was measured to be read at {measured}.")
    touched = config.num_layers * config.top_k * config.expert_parameters * 2
    text = f"One token reads {touched / 1e9:.2f} GB of experts and {other_read(config) / 1e9:.2f} GB beside."
    assumptions.append(text)
    gpu = hardware.gpu if cuda else None
    if gpu is not None:
        link = _link_rate(gpu)
        assumptions.append(f"Copies to the GPU run at {format_rate(link[0])} to {format_rate(link[1])}.")
    slow = _step_seconds(config, slots, policy, hardware if gpu else None, cpu[0], 0)
    fast = _step_seconds(config, slots, policy, hardware if gpu else None, cpu[1], 1)
    return Estimate((1 / slow, 1 / fast), tuple(assumptions))


def other_read(config: MixtralConfig) -> int:
    """Bytes beside the experts that one token reads: all but an untied embedding table."""
    table = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    return 2 * (config.other_parameters - table)


def _step_seconds(
    config: MixtralConfig, slots: int, policy: str, hardware: Hardware | None, cpu: float, end: int
) -> float:
    """A decode step at the slow (`end` 0) or fast (1) end of every range; `hardware` only with a GPU."""
    expert = 2.0 * config.expert_parameters
    executions = config.num_layers * config.top_k
    gpu = hardware.gpu if hardware else None
    if gpu is None:
        return (executions * expert + other_read(config)) / cpu + config.num_layers * _CPU_LAYER[end]
    share = min(1.0, _POPULARITY_GAIN[end] * slots / (config.num_layers * config.num_experts))
    at_gpu = expert / _VRAM_RATE[end]
    copied = expert / _link_rate(gpu)[end] + at_gpu
    missing = {"cpu": expert / cpu, "stream": copied}.get(policy, min(expert / cpu, copied))
    beside = other_read(config) / _VRAM_RATE[end] + config.num_layers * _GPU_LAYER[end]
    return executions * (share * at_gpu + (1 - share) * missing) + beside


def _cpu_rate(hardware: Hardware, threads: int) -> tuple[float, float]:
    """Bytes per second at which the kernels will read weights, (low, high)."""
    measured = hardware.memory.read_bandwidth
    if measured is not None:
        share = min(1.0, threads / hardware.cpu.default_threads)
        return measured * share * _KERNEL_EFFICIENCY[0], measured * _KERNEL_EFFICIENCY[1]
    low, high = _SERVER_RATE if hardware.cpu.usable_cores >= _SERVER_CORES else _DESKTOP_RATE
    return min(low, threads * _CORE_RATE[0]), min(high, threads * _CORE_RATE[1])


def _link_rate(gpu: GpuInfo) -> tuple[float, float]:
    specified = gpu.pcie_bandwidth
    if specified is None:
        return _PCIE_UNKNOWN
    return specified * _PCIE_EFFICIENCY[0], specified * _PCIE_EFFICIENCY[1]
