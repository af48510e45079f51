"""How fast a model will decode, before anything was calibrated: bytes per token over bandwidth, as a range.

Decode is bound by reading weights. What is not known of a machine enters as a range, and each assumption is a
sentence in the result, so that nobody takes a guess for a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.budget import packed_expert_bytes
from engine.hardware.facts import GpuInfo, Hardware
from engine.models.config import MixtralConfig
from engine.precision import precision_name
from engine.units import format_rate
from kernels.formats import WeightFormat

# Share of the measured read bandwidth that the kernels reach while decoding, low and high. `fiddler bench
# kernels` with one token found 120 % in bf16 (plain reading has less in flight), 80 to 86 in 8 bits and 74 to
# 90 in 4 on two Zen 4 cores, and 127, 114 to 130 and 104 to 116 on 15 of an Emerald Rapids Xeon. The high
# ends stay below those: a step is more than its experts. The low ends are for a machine with other work.
_KERNEL_EFFICIENCY = {
    WeightFormat.BF16: (0.55, 1.1),
    WeightFormat.INT8: (0.5, 1.0),
    WeightFormat.INT4: (0.35, 0.95),
}
# Read bandwidth in bytes per second when it was not measured: a core reads 8 to 15 GB/s; two channels of DDR4
# or DDR5 give 35 to 80, a server's eight 80 to 200.
_CORE_RATE = (8e9, 15e9)
_DESKTOP_RATE, _SERVER_RATE = (25e9, 80e9), (60e9, 200e9)
_SERVER_CORES = 20
# Share of PCIe's specified rate that large pinned copies reach; without any figure, PCIe 3 ×4 to 3 ×16.
_PCIE_EFFICIENCY, _PCIE_UNKNOWN = (0.4, 0.87), (3e9, 13e9)
# Memory bandwidth of GPUs from laptops to servers.
_VRAM_RATE = (150e9, 1500e9)
# What the CPU and copies do at the same time, of the sum of both. Low: they share one memory, and nothing is
# gained. High: 0.81 on a 16-core Xeon with PCIe 5 (107 and 55 GB/s alone, 131 together).
_TOGETHER = (0.0, 0.85)
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
    hardware: Hardware,
    config: MixtralConfig,
    slots: int,
    policy: str,
    *,
    cuda: bool,
    threads: int,
    weight_format: WeightFormat = WeightFormat.BF16,
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
    touched = config.num_layers * config.top_k * packed_expert_bytes(config, weight_format)
    kind = f"experts in {precision_name(weight_format)}"
    beside = other_read(config, _dense_bits(weight_format, cuda=cuda))
    text = f"One token reads {touched / 1e9:.2f} GB of {kind} and {beside / 1e9:.2f} GB beside."
    assumptions.append(text)
    gpu = hardware.gpu if cuda else None
    if gpu is not None:
        link = _link_rate(gpu)
        assumptions.append(f"Copies to the GPU run at {format_rate(link[0])} to {format_rate(link[1])}.")
        if policy == "makespan":
            assumptions.append(
                "The CPU and copies at the same time do between as much as the faster one and "
                f"{_TOGETHER[1]:.0%} of both together."
            )
    slow, fast = (
        _step_seconds(
            hardware,
            config,
            slots,
            policy,
            cuda=cuda,
            threads=threads,
            weight_format=weight_format,
            end=end,
        )
        for end in (0, 1)
    )
    return Estimate((1 / slow, 1 / fast), tuple(assumptions))


def other_read(config: MixtralConfig, bits: float = 16) -> float:
    """Bytes beside the experts that one token reads: all but an untied embedding table."""
    table = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    return bits / 8 * (config.other_parameters - table)


def _dense_bits(weight_format: WeightFormat, *, cuda: bool) -> float:
    """Bits of a weight beside the experts: on a GPU they are quantised where experts are."""
    return WeightFormat.INT8.bits if cuda and weight_format is not WeightFormat.BF16 else 16


def _step_seconds(
    hardware: Hardware,
    config: MixtralConfig,
    slots: int,
    policy: str,
    *,
    cuda: bool,
    threads: int,
    weight_format: WeightFormat,
    end: int,
) -> float:
    """A decode step at the slow (`end` 0) or fast (1) end of every range."""
    packed = packed_expert_bytes(config, weight_format)
    on_cpu = packed / _cpu_rate(hardware, threads, weight_format)[end]
    executions = config.num_layers * config.top_k
    gpu = hardware.gpu if cuda else None
    if gpu is None:
        beside = other_read(config) / _cpu_rate(hardware, threads)[end]  # in bf16, whatever experts are in
        return executions * on_cpu + beside + config.num_layers * _CPU_LAYER[end]
    share = min(1.0, _POPULARITY_GAIN[end] * slots / (config.num_layers * config.num_experts))
    at_gpu = packed / _VRAM_RATE[end]
    copied = packed / _link_rate(gpu)[end] + at_gpu
    missing = {"cpu": on_cpu, "stream": copied}.get(policy, min(on_cpu, copied))
    if policy == "makespan" and _TOGETHER[end]:
        missing = min(missing, 1 / (_TOGETHER[end] * (1 / on_cpu + 1 / copied)))
    read = other_read(config, _dense_bits(weight_format, cuda=True))
    beside = read / _VRAM_RATE[end] + config.num_layers * _GPU_LAYER[end]
    return executions * (share * at_gpu + (1 - share) * missing) + beside


def _cpu_rate(
    hardware: Hardware, threads: int, weight_format: WeightFormat = WeightFormat.BF16
) -> tuple[float, float]:
    """Bytes per second at which the kernels will read weights, (low, high)."""
    low, high = _KERNEL_EFFICIENCY[weight_format]
    measured = hardware.memory.read_bandwidth
    if measured is not None:
        return measured * min(1.0, threads / hardware.cpu.default_threads) * low, measured * high
    slow, fast = _SERVER_RATE if hardware.cpu.usable_cores >= _SERVER_CORES else _DESKTOP_RATE
    usual = _KERNEL_EFFICIENCY[WeightFormat.BF16]  # is within the ranges of what was not measured
    slow, fast = min(slow, threads * _CORE_RATE[0]), min(fast, threads * _CORE_RATE[1])
    return slow * low / usual[0], fast * high / usual[1]


def _link_rate(gpu: GpuInfo) -> tuple[float, float]:
    specified = gpu.pcie_bandwidth
    if specified is None:
        return _PCIE_UNKNOWN
    return specified * _PCIE_EFFICIENCY[0], specified * _PCIE_EFFICIENCY[1]
