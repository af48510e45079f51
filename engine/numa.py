"""Memory spread over the nodes of a machine with several memory controllers (NUMA). Linux only, torch-free.

Without a policy, memory lands on the node of the thread that writes it first: the loader's threads may be on
one node, and every core would then read all experts through that node's controller.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from kernels.topology import parse_cpu_list

_NODES = Path("/sys/devices/system/node/has_memory")
_STATUS = Path("/proc/self/status")
_MPOL_INTERLEAVE = 3
_MBIND = {"x86_64": 237, "aarch64": 235}  # the system call's number


def memory_nodes(nodes: Path = _NODES, status: Path = _STATUS) -> tuple[int, ...]:
    """The nodes that have memory and that this process may use; none where that is not known."""
    try:
        present = parse_cpu_list(nodes.read_text())  # the same form as lists of CPUs
        lines = status.read_text().splitlines()
        allowed = next(line.split()[1] for line in lines if line.startswith("Mems_allowed_list:"))
        return tuple(sorted(present & parse_cpu_list(allowed)))
    except (OSError, ValueError, StopIteration, IndexError):
        return ()


def spread(address: int, nbytes: int, nodes: Sequence[int]) -> bool:
    """Let the pages of a mapping come from `nodes` in turns; whether the system agreed.

    For memory at a page's start that nothing was written to yet. A container may refuse the call: the memory
    works as well, at the speed that chance gives it.
    """
    number = _MBIND.get(platform.machine())
    if sys.platform != "linux" or number is None or not nodes:
        return False
    words = max(nodes) // 64 + 1
    mask = (ctypes.c_uint64 * words)()
    for node in nodes:
        mask[node // 64] |= 1 << node % 64
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (
        ctypes.c_long(number),
        ctypes.c_void_p(address),
        ctypes.c_ulong(nbytes),
        ctypes.c_long(_MPOL_INTERLEAVE),
        mask,
        ctypes.c_ulong(64 * words + 1),  # the kernel takes one bit fewer than it is told
        ctypes.c_ulong(0),
    )
    libc.syscall.restype = ctypes.c_long
    return bool(libc.syscall(*arguments) == 0)
