"""How many threads a pool has and on which CPUs they run, on this machine, for this process. Torch-free."""

from __future__ import annotations

import os
import sys

import psutil

from kernels.cgroup import read_limits
from kernels.topology import Topology, default_threads, linux_topology, psutil_topology

PIN_VARIABLE = "FIDDLER_PIN"


def usable_cpus() -> tuple[int, ...]:
    """Return the logical CPUs that threads may be pinned to, best first: see `Topology.order`."""
    return detect_topology().order(allowed_cpus(), read_limits().cpus)


def usable_cores() -> int:
    """Return the number of physical cores that this process may keep busy, at least 1: see `Topology.usable`.

    The affinity mask and a CPU quota of the control group lower the number.
    """
    return detect_topology().usable(allowed_cpus(), read_limits().cpus)


def default_pool_threads() -> int:
    """Return the threads of a pool for which nobody asked for a number."""
    return default_threads(usable_cores())


def pinning_allowed() -> bool:
    """Whether threads may be pinned: unless the variable FIDDLER_PIN is 0, which is for measurements."""
    return os.environ.get(PIN_VARIABLE, "").strip() != "0"


def detect_topology() -> Topology:
    """Return the machine's cores, from the best source there is."""
    found = linux_topology() if sys.platform == "linux" else None
    return found or psutil_topology(psutil.cpu_count(), psutil.cpu_count(logical=False))


def allowed_cpus() -> frozenset[int] | None:
    """Return the logical CPUs that affinity leaves to this process; None where there is no such notion."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    if sys.platform == "win32":
        return frozenset(psutil.Process().cpu_affinity() or ()) or None
    return None
