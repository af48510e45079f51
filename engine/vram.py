"""What this program takes of a GPU's memory, torch's allocator and CUDA itself together, and a bound on it.

torch counts and bounds only what its allocator has. CUDA's context, its libraries and kernels lie beside it:
what they take depends on the card and the versions (0.3 GB on a desktop's card, more on a server's), and
only a comparison of the free memory before and after shows it.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from engine.budget import CUDA_DEVICE_BYTES, CUDA_LATER_BYTES
from engine.hardware.facts import Hardware
from engine.hardware.gpu import detect_gpus
from engine.hardware.torch_build import find_torch_build

# What CUDA was seen to take by itself, by device number: for the whole process, once and for all.
_taken: dict[int, int] = {}


def start_cuda(hardware: Hardware) -> Hardware:
    """Start CUDA on the first GPU if it has not been, and note in `hardware` what it takes by itself.

    `hardware` must be fresh, as its free memory is the figure before. Where CUDA ran before anybody measured,
    the planner's constant stands. The GPU's `cuda_bytes` are counted as free, since a plan counts them as
    needed.
    """
    gpu = hardware.gpu
    if gpu is None:
        return hardware
    device = torch.device("cuda", 0)
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        reserved = _touch(device)
        now = detect_gpus(find_torch_build()).gpus
        free = next((other.vram_free for other in now if other.uuid == gpu.uuid), gpu.vram_free)
        taken = gpu.vram_free - free - reserved
        _taken[0] = taken if taken > 0 else CUDA_DEVICE_BYTES  # others gave memory back: nothing is known
        counted = 0  # it was free when the hardware was looked at
    else:
        counted = _taken.setdefault(0, CUDA_DEVICE_BYTES)
    known = replace(gpu, cuda_bytes=_taken[0], vram_free=min(gpu.vram_total, gpu.vram_free + counted))
    return replace(hardware, gpus=(known, *hardware.gpus[1:]))


def _touch(device: torch.device) -> int:
    """Use the device as a model does at first; bytes that torch's allocator then holds."""
    ones = torch.ones(64, 64, device=device, dtype=torch.bfloat16)
    torch.nn.functional.silu(ones @ ones).float().sum().item()
    return torch.cuda.memory_reserved(device)


def cuda_bytes(device: torch.device) -> int:
    """What CUDA itself takes of the device's memory: measured when it started, or the planner's constant."""
    return _taken.get(device.index or 0, CUDA_DEVICE_BYTES)


def used_bytes(device: torch.device) -> int:
    """All that this process takes of the device's memory now."""
    return torch.cuda.memory_reserved(device) + cuda_bytes(device)


def limit(device: torch.device, budget: int) -> None:
    """Let everything together take at most `budget` bytes: what would need more is torch's OutOfMemoryError.

    What CUDA takes itself is left out of the allocator's part, and what it will take for kernels and graphs
    that are loaded later.
    """
    _, total = torch.cuda.mem_get_info(device)
    ours = allocator_share(budget, cuda_bytes(device), total)
    torch.cuda.memory.set_per_process_memory_fraction(ours, device)


def unlimit(device: torch.device) -> None:
    """Take the bound away, and give back what the allocators keep for later."""
    torch.cuda.memory.set_per_process_memory_fraction(1.0, device)
    empty_caches()


def empty_caches() -> None:
    """Give back what torch's allocators keep for later, on the GPU and of the host's pinned memory.

    That is where a model's embeddings were, a quarter of a gigabyte of Mixtral's.
    """
    torch.cuda.empty_cache()
    torch._C._host_emptyCache()  # torch.accelerator has the same, but not in 2.11


def allocator_share(budget: int, cuda: int, total: int) -> float:
    """The share of a device's `total` bytes that torch's allocator may take within a budget."""
    return min(1.0, max(0.0, (budget - cuda - CUDA_LATER_BYTES) / total))
