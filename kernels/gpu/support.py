"""Whether Triton's kernels can be used on a device, tried once. Imports neither torch nor triton itself."""

from __future__ import annotations

import functools
import os
from subprocess import SubprocessError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

OLDEST_CAPABILITY = (8, 0)  # of GPUs that Triton supports
_FAILURES = (RuntimeError, OSError, ValueError, SubprocessError, AssertionError, ImportError)


def usable(device: torch.device) -> bool:
    """Whether kernels can be compiled and run on `device`."""
    return not why_not(device)


@functools.cache
def why_not(device: torch.device) -> str:
    """Why they cannot, in words; empty if they can.

    Raises torch.OutOfMemoryError, which says nothing about kernels: whoever frees memory may ask again.
    """
    if device.type != "cuda":
        return "it is no NVIDIA GPU"
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        return "TRITON_INTERPRET is set, which would interpret kernels on the CPU"
    try:
        import torch
        from triton.errors import TritonError

        from kernels.gpu.host import add_from_host
    except ImportError:
        return "Triton is not installed"
    capability = torch.cuda.get_device_capability(device)
    if capability < OLDEST_CAPABILITY:
        has, needs = (".".join(map(str, each)) for each in (capability, OLDEST_CAPABILITY))
        return f"its compute capability is {has}, and Triton's kernels need {needs}"
    # Triton asserts that the driver's library is there, builds launchers with the system's C compiler, which
    # it imports, calls ptxas, and keeps what it built in a folder: each of these may be missing or fail.
    try:
        out = torch.zeros(3, 8, device=device)
        add_from_host(out, torch.ones(1, 8, pin_memory=True), torch.ones(1, dtype=torch.int64, device=device))
        right = out.sum(1).tolist() == [0, 8, 0]
    except torch.OutOfMemoryError:
        raise
    except (*_FAILURES, TritonError) as error:
        lines = str(error).strip().splitlines() or [""]
        return f"a kernel cannot be compiled ({type(error).__name__}: {lines[-1][:200]})"
    return "" if right else "a kernel computes wrong numbers"
