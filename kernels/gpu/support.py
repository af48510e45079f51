"""Whether Triton's kernels can be used on a device, tried once. Imports neither torch nor triton itself."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def usable(device: torch.device) -> bool:
    """Whether kernels can be compiled and run on `device`."""
    return not why_not(device)


@functools.cache
def why_not(device: torch.device) -> str:
    """Why they cannot, in words; empty if they can."""
    if device.type != "cuda":
        return "it is no NVIDIA GPU"
    try:
        import torch

        from kernels.gpu.host import add_from_host

        out = torch.zeros(8, device=device)
        add_from_host(out, torch.ones(8, pin_memory=True))
        right = bool((out == 1).all())
    except ImportError:
        return "Triton is not installed"
    except Exception as error:  # noqa: BLE001 - no C compiler, no driver, an old GPU: each has its own error
        lines = str(error).splitlines() or [""]
        return f"a kernel cannot be compiled ({type(error).__name__}: {lines[-1][:200]})"
    return "" if right else "a kernel computes wrong numbers"
