"""How many experts take turns so that no cache serves their weights, and the memory that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.errors import MemoryFullError
from engine.units import GIB, KIB, MIB, format_bytes

# Four times the largest L3 of a socket that cloud servers have (a virtual machine may not tell its size).
_LEAST_BYTES = 4 * GIB
_CACHES = 8  # a cache keeps at most an eighth of what takes turns
_SHARE = 0.6  # of the available memory; the rest is for this program's own needs and for others
_UNITS = {"K": KIB, "M": MIB, "G": GIB}


@dataclass(frozen=True)
class Rotation:
    """`count` experts of `nbytes` each that take turns; `wanted` bytes were asked for."""

    count: int
    nbytes: int
    wanted: int

    @property
    def total(self) -> int:
        """Bytes of all of them."""
        return self.count * self.nbytes

    @property
    def short(self) -> bool:
        """Whether the memory did not suffice for as much as was wanted, so that caches may help."""
        return self.total < self.wanted


def wanted_bytes(cache: int | None) -> int:
    """Bytes that should take turns on a machine with so many bytes of last-level cache (None: unknown)."""
    return max(_LEAST_BYTES, _CACHES * (cache or 0))


def plan_rotation(nbytes: int, experts: int, wanted: int, available: int) -> Rotation:
    """As many experts of `nbytes` as make up `wanted` bytes, in whole calls of `experts`, at least two calls.

    Raises MemoryFullError if two calls' experts do not fit into the share of the `available` bytes.
    """
    room = int(available * _SHARE)
    call = nbytes * experts
    calls = max(2, min(-(-wanted // call), room // call))
    if calls * call > room:
        raise MemoryFullError(
            f"There is not enough memory to measure: {format_bytes(calls * call)} are needed.",
            why=f"{format_bytes(available)} are available, and a part of it is left to other programs.",
            action="Close other programs, leave out the largest format, or choose --shape starter.",
        )
    return Rotation(calls * experts, nbytes, wanted)


def last_level_cache(root: Path = Path("/")) -> int | None:
    """Bytes of all last-level caches together, from `/sys` below `root`; None where it does not tell."""
    sizes: dict[tuple[int, str], int] = {}
    for index in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level = int((index / "level").read_text())
            cpus = (index / "shared_cpu_list").read_text().strip()
            sizes[level, cpus] = _parse_size((index / "size").read_text())
        except (OSError, ValueError):
            continue
    last = max((level for level, _ in sizes), default=0)
    return sum(size for (level, _), size in sizes.items() if level == last) or None


def _parse_size(text: str) -> int:
    """The kernel's "32768K". Raises ValueError on anything else."""
    stripped = text.strip()
    unit = _UNITS.get(stripped[-1:])
    return int(stripped[:-1]) * unit if unit else int(stripped)
