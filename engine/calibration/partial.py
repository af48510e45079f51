"""What a cancelled calibration had measured, so that the next one goes on from there."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import DAMAGED
from engine.files import write_atomically
from engine.kernel_choice import KernelChoice
from engine.profile import Probe, ProbeKind

# Older measurements belong to another day of this computer: other programs, other temperatures.
_FRESH_SECONDS = 3600.0


@dataclass
class PartialResult:
    """Finished probes by kind and token count, the kernels that were chosen first, and the popularity if it
    was read, kept in `path`.
    """

    path: Path
    probes: dict[tuple[ProbeKind, int], Probe] = field(default_factory=dict)
    popularity: npt.NDArray[np.float64] | None = None
    kernels: KernelChoice | None = None

    @staticmethod
    def load(path: Path, now: float | None = None) -> PartialResult:
        """What `path` holds; nothing if it is missing, damaged or more than an hour old."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            age = (time.time() if now is None else now) - float(data["saved"])
            probes = [Probe.from_dict(probe) for probe in data["probes"]]
            table = None if data["popularity"] is None else np.asarray(data["popularity"], dtype=np.float64)
            kernels = None if data["kernels"] is None else KernelChoice.from_dict(data["kernels"])
        except (OSError, *DAMAGED):
            return PartialResult(path)
        if not 0 <= age <= _FRESH_SECONDS:
            return PartialResult(path)
        return PartialResult(path, {(probe.kind, probe.tokens): probe for probe in probes}, table, kernels)

    def add(
        self,
        probe: Probe,
        popularity: npt.NDArray[np.float64] | None = None,
        kernels: KernelChoice | None = None,
    ) -> None:
        """Keep a finished probe, with the popularity or the kernels if it found those. Raises `FileError`."""
        self.probes[probe.kind, probe.tokens] = probe
        if popularity is not None:
            self.popularity = popularity
        if kernels is not None:
            self.kernels = kernels
        data = {
            "saved": time.time(),
            "probes": [known.to_dict() for known in self.probes.values()],
            "popularity": None if self.popularity is None else self.popularity.tolist(),
            "kernels": None if self.kernels is None else self.kernels.to_dict(),
        }
        write_atomically(self.path, json.dumps(data))

    def remove(self) -> None:
        """Delete the file: the calibration is complete."""
        self.path.unlink(missing_ok=True)
