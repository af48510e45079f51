"""A computer in plain words: the rows of the first page, from detected facts. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

from app.i18n import tr, tr_count
from engine.hardware import CpuInfo, GpuState, Hardware
from engine.units import format_bytes, format_rate


@dataclass(frozen=True)
class Row:
    """One part of the computer: what it is, its figure, and what that means for running a model."""

    label: str
    value: str
    meaning: str = ""
    good: bool = True


def rows(hardware: Hardware) -> tuple[Row, ...]:
    """All parts, in the order in which they matter."""
    return (
        _processor(hardware.cpu),
        _instructions(hardware.cpu),
        _memory(hardware),
        _graphics(hardware),
        _disk(hardware),
        Row(tr("System"), hardware.os_name),
    )


def details(hardware: Hardware) -> str:
    """What "Copy details" copies: every fact, one a line, fit for a report."""
    lines = list(hardware.summary())
    lines.append(tr("CPU features: {names}", names=", ".join(hardware.cpu.features) or "–"))
    return "\n".join(lines)


def _processor(cpu: CpuInfo) -> Row:
    cores = tr_count("{count} core", "{count} cores", cpu.physical_cores)
    if cpu.hybrid:
        efficiency = cpu.physical_cores - cpu.performance_cores
        cores = tr("{fast} fast and {slow} efficiency cores", fast=cpu.performance_cores, slow=efficiency)
    if cpu.usable_cores < cpu.performance_cores:
        meaning = tr_count(
            "{cores}, of which this program may use {count}.",
            "{cores}, of which this program may use {count}.",
            cpu.usable_cores,
            cores=cores,
        )
    elif cpu.hybrid:
        meaning = tr("{cores}; the fast ones do the work.", cores=cores)
    elif cpu.default_threads < cpu.usable_cores:
        meaning = tr("{cores}; one is left to other work.", cores=cores)
    else:
        meaning = tr("{cores}, all used.", cores=cores)
    return Row(tr("Processor"), cpu.name, meaning)


def _instructions(cpu: CpuInfo) -> Row:
    words = {
        "amx": (tr("AMX with BF16"), tr("Very fast: made for this kind of work."), True),
        "avx512_bf16": (tr("AVX-512 with BF16"), tr("Fast: multiplies the model's numbers directly."), True),
        "avx512": (tr("AVX-512"), tr("Good: long vectors."), True),
        "avx2": (tr("AVX2"), tr("Good: what most computers have."), True),
        "portable": (tr("No vector instructions"), tr("Slow: this processor lacks AVX2."), False),
    }
    value, meaning, good = words.get(cpu.isa, (cpu.isa, "", True))
    if cpu.isas and cpu.isa != cpu.isas[-1]:
        meaning = tr("{meaning} Limited by a setting; the processor can do more.", meaning=meaning)
    return Row(tr("Instructions"), value, meaning, good)


def _memory(hardware: Hardware) -> Row:
    memory = hardware.memory
    available = format_bytes(memory.available)
    meaning = tr("{amount} available now.", amount=available)
    if memory.limit is not None:
        meaning = tr("{amount} available now, limited by a container or session.", amount=available)
    if memory.read_bandwidth is not None:
        meaning = tr("{text} Read at {rate}.", text=meaning, rate=format_rate(memory.read_bandwidth))
    return Row(tr("Memory"), format_bytes(memory.total), meaning)


def _graphics(hardware: Hardware) -> Row:
    gpu = hardware.gpu
    if gpu is None:
        missing = hardware.gpu_state in (GpuState.NO_DRIVER, GpuState.NO_GPU)
        value = tr("No NVIDIA graphics card found") if missing else tr("Not usable")
        if hardware.gpus:
            value = tr("{name} (not used)", name=hardware.gpus[0].name)
        meaning = hardware.gpu_message or tr("Everything runs on the CPU.")
        return Row(tr("Graphics card"), value, meaning, good=missing)
    free, total = format_bytes(gpu.vram_free), format_bytes(gpu.vram_total)
    parts = [tr("{free} of {total} graphics memory free", free=free, total=total)]
    if gpu.pcie_generation_max and gpu.pcie_width_max:
        link = tr("PCIe {generation} ×{width}", generation=gpu.pcie_generation_max, width=gpu.pcie_width_max)
        parts.append(link)
    parts.append(tr("driver {version}", version=gpu.driver))
    meaning = f"{', '.join(parts)}. {hardware.gpu_message}".strip()
    return Row(tr("Graphics card"), gpu.name, meaning)


def _disk(hardware: Hardware) -> Row:
    disk = hardware.disk
    value = tr("{amount} free", amount=format_bytes(disk.free))
    return Row(tr("Disk"), value, tr("Models are stored in {folder}.", folder=disk.path))
