"""How many threads the pool may use: physical cores, within affinity and control groups. Torch-free."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_CGROUPS = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return the number of physical cores that this process may keep busy, at least 1.

    Hardware threads of one core count once: they share its load ports, and decode is loads. The affinity mask
    and a CPU quota of the control group (version 2 or 1) lower the number.
    """
    allowed = _allowed_cpus()
    cores = len(allowed) if allowed is not None else os.cpu_count() or 1
    if allowed is not None:
        cores = _physical_cores(allowed)
    quota = _quota()
    if quota is not None:
        cores = min(cores, math.floor(quota))
    return max(1, cores)


def _allowed_cpus() -> frozenset[int] | None:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return None


def _physical_cores(cpus: Collection[int], root: Path = _CPUS) -> int:
    """Count the cores among `cpus` by their lists of sibling threads; a CPU without a list is a core."""
    siblings = set()
    for cpu in cpus:
        try:
            siblings.add((root / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip())
        except OSError:
            siblings.add(str(cpu))
    return len(siblings)


def _quota(root: Path = _CGROUPS, process: Path = Path("/proc/self/cgroup")) -> float | None:
    """Return the smallest CPU quota of the process's control groups in cores, or None."""
    try:
        lines = process.read_text().splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, read = root, _quota_v2
        elif "cpu" in controllers.split(","):
            base, read = root / "cpu", _quota_v1
        else:
            continue
        # A container may see its own group as the root while the file names the path outside: try both.
        folder = base / path.strip("/")
        for candidate in (folder, *folder.parents):
            quotas.append(read(candidate))
            if candidate == base:
                break
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_v2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return None if quota <= 0 else quota / period
