"""Bandwidths as they were measured, for rooflines and reports. Torch-free."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Rates:
    """Bytes per second, whole ones, so that a file gives back what was written.

    `read`: the pool's threads reading memory and doing nothing else, at their best. `cpu`: the kernels
    reading experts for one token, two at a time, over a second or so. `copy`: from pinned memory to the GPU;
    `cpu_together` and `copy_together` are both at the same time; `gpu`: the GPU reading its own memory. None
    without a GPU.
    """

    read: float
    cpu: float
    copy: float | None = None
    cpu_together: float | None = None
    copy_together: float | None = None
    gpu: float | None = None

    def __post_init__(self) -> None:
        for name, rate in asdict(self).items():
            if rate is not None:
                object.__setattr__(self, name, float(round(rate)))

    @property
    def together(self) -> float:
        """What CPU and copies move together, or the CPU alone where that is more or there is no GPU."""
        if self.cpu_together is None or self.copy_together is None:
            return self.cpu
        return max(self.cpu, self.cpu_together + self.copy_together)

    @property
    def cpu_share(self) -> float:
        """The part of an expert that the CPU takes if both are to finish at once."""
        if self.cpu_together is None or self.copy_together is None:
            return 1.0
        return self.cpu_together / (self.cpu_together + self.copy_together)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in GB/s."""
        return {f"{name}_gbs": None if rate is None else rate / 1e9 for name, rate in asdict(self).items()}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Rates:
        """What `to_dict` wrote. Raises KeyError, TypeError or ValueError for anything else."""
        rates = {field.name: _rate(data[f"{field.name}_gbs"]) for field in fields(Rates)}
        if rates["read"] is None or rates["cpu"] is None:
            raise ValueError("the CPU's rates are missing")
        return Rates(**rates)  # type: ignore[arg-type]

    def text(self) -> str:
        """One line for people."""
        parts = [f"memory is read at {self.read / 1e9:.1f} GB/s, by the kernels at {self.cpu / 1e9:.1f}"]
        if self.copy is not None:
            parts.append(f"copies to the GPU run at {self.copy / 1e9:.1f}")
        if self.cpu_together is not None and self.copy_together is not None:
            parts.append(
                f"both at once at {(self.cpu_together + self.copy_together) / 1e9:.1f} "
                f"(the CPU {self.cpu_share:.0%})"
            )
        if self.gpu is not None:
            parts.append(f"the GPU reads {self.gpu / 1e9:.0f}")
        return ", ".join(parts) + "."


def _rate(value: Any) -> float | None:
    if value is None:
        return None
    rate = float(value) * 1e9
    if not 0 < rate < float("inf"):
        raise ValueError(f"a positive rate in the place of {value!r}")
    return rate
