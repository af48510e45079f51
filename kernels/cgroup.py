"""CPU and memory limits that a container or session puts on this process (Linux cgroups, v1 and v2).

The parsers are pure; `read_limits` walks the file system below `root`, which tests replace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# v1 writes its "no limit" as the largest multiple of the page size below 2^63; no machine has as much.
_NO_LIMIT = 1 << 60


@dataclass(frozen=True)
class CgroupLimits:
    """`cpus` this process may use on average and `memory` in bytes (None: no limit).

    `memory_used` is what the limiting group uses and could not give back: page cache that can be dropped is
    not counted.
    """

    cpus: float | None = None
    memory: int | None = None
    memory_used: int = 0


def parse_membership(text: str) -> dict[str, str]:
    """`/proc/self/cgroup`: controller to path; the v2 hierarchy has the controller name ""."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                paths[controller] = parts[2]
    return paths


def parse_mounts(text: str) -> dict[str, tuple[str, str]]:
    """`/proc/self/mountinfo`: controller ("" for v2) to (root within the hierarchy, mount point)."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if not separator or len(fields) < 5 or len(kind) < 3:
            continue
        where = (fields[3], fields[4])
        if kind[0] == "cgroup2":
            mounts.setdefault("", where)
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                mounts.setdefault(option, where)
    return mounts


def parse_cpu_max(text: str) -> float | None:
    """v2 `cpu.max`: "max 100000" or "150000 100000" in microseconds, as CPUs."""
    parts = text.split()
    if len(parts) != 2 or parts[0] == "max":
        return None
    return _ratio(parts[0], parts[1])


def parse_cfs(quota: str, period: str) -> float | None:
    """v1 `cpu.cfs_quota_us` (-1: none) and `cpu.cfs_period_us`, as CPUs."""
    return _ratio(quota.strip(), period.strip())


def parse_bytes(text: str) -> int | None:
    """A memory limit of v1 or v2 in bytes; None for "max", for v1's huge number, and for nonsense."""
    stripped = text.strip()
    if not stripped.isdecimal() or int(stripped) >= _NO_LIMIT:
        return None
    return int(stripped)


def parse_stat(text: str) -> dict[str, int]:
    """`memory.stat`: name to number."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def read_limits(root: Path = Path("/")) -> CgroupLimits:
    """The tightest limits on the way from this process's group up to the hierarchy's root."""
    membership = parse_membership(_read(root / "proc/self/cgroup"))
    mounts = parse_mounts(_read(root / "proc/self/mountinfo"))
    cpus: list[float] = []
    memory: list[tuple[int, int]] = []  # (limit, used)
    for folder in _folders(root, "", membership, mounts):
        cpus += _present(parse_cpu_max(_read(folder / "cpu.max")))
        limit = parse_bytes(_read(folder / "memory.max"))
        if limit is not None:
            memory.append((limit, _used(folder, "memory.current", "inactive_file")))
    for folder in _folders(root, "cpu", membership, mounts):
        cpus += _present(parse_cfs(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")))
    for folder in _folders(root, "memory", membership, mounts):
        limit = parse_bytes(_read(folder / "memory.limit_in_bytes"))
        if limit is not None:
            memory.append((limit, _used(folder, "memory.usage_in_bytes", "total_inactive_file")))
    quota = min(cpus, default=None)
    if not memory:
        return CgroupLimits(quota)
    limit, used = min(memory, key=lambda entry: entry[0] - entry[1])
    return CgroupLimits(quota, limit, used)


def _folders(
    root: Path, controller: str, membership: dict[str, str], mounts: dict[str, tuple[str, str]]
) -> Iterator[Path]:
    """The process's group in one hierarchy and all its ancestors that are visible from here.

    A container often sees only a part of the hierarchy mounted: the path of the process is then below the
    mount's root, or (without a cgroup namespace) names groups that are not visible; those are skipped.
    """
    if controller not in membership or controller not in mounts:
        return
    mounted, point = mounts[controller]
    path = PurePosixPath(membership[controller])
    if path.is_relative_to(mounted):
        path = path.relative_to(mounted)
    base = root / point.lstrip("/")
    parts = [part for part in path.parts if part not in ("/", "..")]
    for length in range(len(parts), -1, -1):
        folder = base.joinpath(*parts[:length])
        if folder.is_dir():
            yield folder


def _used(folder: Path, current: str, droppable: str) -> int:
    used = parse_bytes(_read(folder / current)) or 0
    return max(0, used - parse_stat(_read(folder / "memory.stat")).get(droppable, 0))


def _ratio(quota: str, period: str) -> float | None:
    if not quota.isdecimal() or not period.isdigit() or int(quota) == 0 or int(period) == 0:
        return None
    return int(quota) / int(period)


def _present(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _read(path: Path) -> str:
    """The file's text, or nothing where it is missing or not readable: then there is no limit to see."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
