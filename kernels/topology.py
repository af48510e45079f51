"""Which logical CPUs share a physical core, which cores are efficiency cores, and which of them to use.

On Linux from `/sys` (below `root`, which tests replace); elsewhere from counts. Torch-free.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

# Where the kernel does not name the types, a core counts as an efficiency core if its top frequency is below
# this share of the fastest core's. Cores of one type differ by a few percent (favoured cores), types by 20%.
_EFFICIENCY_SHARE = 0.82

# From this many usable cores on, the default leaves one to the thread that feeds the GPU and to other
# programs. Below it, a core is too much of the machine.
_SPARE_CORE_FROM = 6


def default_threads(usable: int) -> int:
    """Threads of a pool, its caller included, on `usable` cores, where nobody asked for a number."""
    return usable - 1 if usable >= _SPARE_CORE_FROM else usable


@dataclass(frozen=True)
class Topology:
    """`cores`: the logical CPUs of each physical core; `efficiency`: the logical CPUs of efficiency cores."""

    cores: tuple[frozenset[int], ...]
    efficiency: frozenset[int] = frozenset()

    @property
    def logical(self) -> int:
        """Logical CPUs."""
        return sum(len(core) for core in self.cores)

    @property
    def physical(self) -> int:
        """Physical cores."""
        return len(self.cores)

    @property
    def performance(self) -> int:
        """Physical performance cores; all cores where there is one kind."""
        return sum(not core <= self.efficiency for core in self.cores) or self.physical

    def usable(self, allowed: frozenset[int] | None, quota: float | None) -> int:
        """Cores worth keeping busy: performance cores with an allowed logical CPU, within the quota.

        Where affinity leaves only efficiency cores, those count. At least one.
        """
        reachable = [core for core in self.cores if allowed is None or core & allowed]
        chosen = [core for core in reachable if not core <= self.efficiency] or reachable
        return max(1, min(len(chosen), _whole(quota)))

    def order(self, allowed: frozenset[int] | None, quota: float | None) -> tuple[int, ...]:
        """The logical CPUs to use, one of each core with an allowed one: performance cores first.

        Hardware threads of one core share its load ports, and decode is loads: one is enough. Efficiency
        cores stand at the end, for those who ask for more threads than `usable`. Never more than the quota.
        """
        cpus = [
            (core <= self.efficiency, min(reachable))
            for core in self.cores
            if (reachable := core if allowed is None else core & allowed)
        ]
        return tuple(cpu for _, cpu in sorted(cpus))[: max(1, _whole(quota))]


def parse_cpu_list(text: str) -> frozenset[int]:
    """The kernel's list format: "0-3,8,10-11". Raises ValueError on anything else."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def linux_topology(root: Path = Path("/")) -> Topology | None:
    """The topology from `/sys/devices/system/cpu`; None where it is not there (a sandbox, another system)."""
    base = root / "sys/devices/system/cpu"
    online = _cpus(base / "online")
    cores = {
        _cpus(base / f"cpu{cpu}/topology/core_cpus_list")
        or _cpus(base / f"cpu{cpu}/topology/thread_siblings_list")
        or frozenset({cpu})
        for cpu in sorted(online)
    }
    if not cores:
        return None
    ordered = tuple(sorted((core & online for core in cores), key=min))
    return Topology(ordered, _efficiency(root, base, online))


def psutil_topology(logical: int | None, physical: int | None) -> Topology:
    """A topology with the given counts (None: unknown), for systems that do not tell more."""
    threads = logical or physical or 1
    count = min(physical or threads, threads)
    cores: dict[int, set[int]] = defaultdict(set)
    for cpu in range(threads):
        cores[cpu % count].add(cpu)
    return Topology(tuple(frozenset(core) for core in cores.values()))


def _whole(quota: float | None) -> int:
    """The whole CPUs within the quota (None: any number)."""
    return sys.maxsize if quota is None else int(quota)


def _efficiency(root: Path, base: Path, online: frozenset[int]) -> frozenset[int]:
    """Logical CPUs of efficiency cores: as the kernel names them, or by top frequency."""
    performance = _cpus(root / "sys/devices/cpu_core/cpus")
    efficiency = _cpus(root / "sys/devices/cpu_atom/cpus") | _cpus(root / "sys/devices/cpu_lowpower/cpus")
    if performance and efficiency:
        return efficiency & online
    frequency = {cpu: _number(base / f"cpu{cpu}/cpufreq/cpuinfo_max_freq") for cpu in online}
    if not frequency or not all(frequency.values()):
        return frozenset()
    fastest = max(frequency.values())
    return frozenset(cpu for cpu, hertz in frequency.items() if hertz < _EFFICIENCY_SHARE * fastest)


def _cpus(path: Path) -> frozenset[int]:
    try:
        return parse_cpu_list(path.read_text())
    except (OSError, ValueError):
        return frozenset()


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
