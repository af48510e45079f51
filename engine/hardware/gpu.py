"""NVIDIA GPUs through NVML. Every way of not having one is a state with a sentence, never an exception."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.hardware.facts import GpuInfo, GpuState
from engine.hardware.torch_build import TorchBuild

# CUDA 13, which current torch is built with, dropped everything before Turing.
OLDEST_CAPABILITY = (7, 5)
_BF16_CAPABILITY = (8, 0)
_ON_CPU = "All work runs on the CPU."


@dataclass(frozen=True)
class GpuReport:
    """The GPUs, whether one can be used, and what to tell the user about it (may be empty)."""

    gpus: tuple[GpuInfo, ...]
    state: GpuState
    message: str = ""


def detect_gpus(
    torch: TorchBuild | None, nvml: Any = None, environment: Mapping[str, str] = os.environ
) -> GpuReport:
    """Ask NVML (the module `nvml`; by default nvidia-ml-py's) about the GPUs.

    `torch` is the installed build, which must be able to use the GPU. `environment` may hide GPUs by
    CUDA_VISIBLE_DEVICES, as CUDA itself understands it.
    """
    if nvml is None:
        import pynvml

        nvml = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return _without_driver(nvml, error)
    try:
        cuda = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        driver = str(nvml.nvmlSystemGetDriverVersion())
        gpus = [_gpu(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        return GpuReport(
            (),
            GpuState.BROKEN,
            f"The NVIDIA driver does not answer properly ({error}). {_ON_CPU} "
            "Restart the computer, or install the driver again.",
        )
    finally:
        _quietly(nvml, nvml.nvmlShutdown)
    driver_cuda = (cuda // 1000, cuda % 1000 // 10)
    return judge(tuple(gpus), driver_cuda, torch, environment.get("CUDA_VISIBLE_DEVICES"))


def judge(
    gpus: tuple[GpuInfo, ...],
    driver_cuda: tuple[int, int],
    torch: TorchBuild | None,
    visible: str | None = None,
) -> GpuReport:
    """Whether the first GPU that is shown can be used by this torch.

    `driver_cuda`: the CUDA version that the driver supports; `visible`: see `select_visible`.
    """
    if not gpus:
        return GpuReport((), GpuState.NO_GPU, f"The NVIDIA driver finds no graphics card. {_ON_CPU}")
    name = gpus[0].name
    shown = select_visible(gpus, visible)
    if not shown:
        message = f"There is a graphics card ({name}), but CUDA_VISIBLE_DEVICES hides it. {_ON_CPU}"
        return GpuReport(gpus, GpuState.HIDDEN, message)
    if torch is None or not torch.has_cuda:
        version = "is not installed" if torch is None else f"{torch.version} is built without CUDA"
        message = (
            f"There is a graphics card ({name}), but the installed torch {version}. {_ON_CPU} "
            "To use the card, install torch with CUDA (see the README)."
        )
        return GpuReport(shown, GpuState.TORCH_WITHOUT_CUDA, message)
    usable = tuple(gpu for gpu in shown if gpu.compute_capability >= OLDEST_CAPABILITY)
    if shown[0] not in usable:  # the one that CUDA computes on
        message = (
            f"The graphics card ({shown[0].name}) is too old: compute capability "
            f"{'.'.join(map(str, shown[0].compute_capability))}, needed "
            f"{'.'.join(map(str, OLDEST_CAPABILITY))}. {_ON_CPU}"
        )
        if usable:
            message += f" To use {usable[0].name}, set CUDA_VISIBLE_DEVICES to {usable[0].uuid}."
        return GpuReport(shown, GpuState.TOO_OLD, message)
    needed = torch.cuda_version
    if needed is not None and needed[0] > driver_cuda[0]:  # within a major version any driver will do
        message = (
            f"The NVIDIA driver {usable[0].driver} supports CUDA {driver_cuda[0]}.{driver_cuda[1]}, and the "
            f"installed torch needs CUDA {needed[0]}. {_ON_CPU} Update the driver to use {usable[0].name}."
        )
        return GpuReport(usable, GpuState.DRIVER_TOO_OLD, message)
    return GpuReport(usable, GpuState.READY, _remarks(usable))


def select_visible(gpus: tuple[GpuInfo, ...], visible: str | None) -> tuple[GpuInfo, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in its order; everything if it is not set.

    Entries are indices or the beginning of a UUID; the first invalid one ends the list, as in CUDA.
    """
    if visible is None:
        return gpus
    chosen: list[GpuInfo] = []
    for entry in visible.split(","):
        text = entry.strip()
        found = [
            gpu
            for gpu in gpus
            if (text.isdecimal() and gpu.index == int(text)) or (len(text) > 4 and gpu.uuid.startswith(text))
        ]
        if len(found) != 1 or found[0] in chosen:
            break
        chosen.append(found[0])
    return tuple(chosen)


def _remarks(gpus: tuple[GpuInfo, ...]) -> str:
    remarks = []
    if len(gpus) > 1:
        remarks.append(f"{len(gpus)} graphics cards were found; one is used.")
    if gpus[0].compute_capability < _BF16_CAPABILITY:
        remarks.append(f"{gpus[0].name} has no bf16 arithmetic of its own; it is emulated, which is slower.")
    return " ".join(remarks)


def _without_driver(nvml: Any, error: Exception) -> GpuReport:
    code = getattr(error, "value", None)
    if code in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED):
        message = f"No NVIDIA driver was found, so no NVIDIA graphics card can be used. {_ON_CPU}"
        return GpuReport((), GpuState.NO_DRIVER, message)
    message = (
        f"The NVIDIA driver does not start ({error}). {_ON_CPU} After a driver update, restart the computer."
    )
    return GpuReport((), GpuState.BROKEN, message)


def _gpu(nvml: Any, index: int, driver: str) -> GpuInfo:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)

    def link(query: Callable[[Any], int]) -> int | None:
        return _quietly(nvml, query, handle)

    return GpuInfo(
        index=index,
        name=str(nvml.nvmlDeviceGetName(handle)),
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        vram_total=int(memory.total),
        vram_free=int(memory.free),
        driver=driver,
        compute_capability=tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle)),
        pcie_generation=link(nvml.nvmlDeviceGetCurrPcieLinkGeneration),
        pcie_width=link(nvml.nvmlDeviceGetCurrPcieLinkWidth),
        pcie_generation_max=link(nvml.nvmlDeviceGetMaxPcieLinkGeneration),
        pcie_width_max=link(nvml.nvmlDeviceGetMaxPcieLinkWidth),
    )


def _quietly(nvml: Any, query: Callable[..., Any], *arguments: Any) -> int | None:
    """The answer, or None where NVML does not support the question (virtual GPUs and laptops often)."""
    try:
        answer = query(*arguments)
    except nvml.NVMLError:
        return None
    return None if answer is None else int(answer)
