"""What `fiddler bench kernels` measured, as plain data that a file can keep. Torch-free."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.bench.errors import BenchError
from engine.bench.timing import Times
from engine.errors import DAMAGED, FileError
from engine.files import file_error

EXACT, EIGHT_BIT = "exact", "8-bit"  # activations: as precise as the level's arithmetic, or rounded to 8 bits

_DIFFERENT = 0.05  # readings that differ by more are both told


@dataclass(frozen=True)
class Figure:
    """One expert in `format` on `isa` with `tokens` tokens; times are per expert, in seconds.

    `activations`: EXACT or EIGHT_BIT, as the tuned kernels take that many tokens.
    """

    format: str
    isa: str
    tokens: int
    nbytes: int
    times: Times
    activations: str = EXACT

    @property
    def gbs(self) -> float:
        """Bytes of the weights over the best time, in GB/s."""
        return self.nbytes / self.times.best / 1e9


@dataclass(frozen=True)
class LeftOut:
    """A figure that was not taken, as one call would take `seconds`."""

    format: str
    isa: str
    tokens: int
    seconds: float


@dataclass
class KernelReport:
    """A run as far as it got. `reads`: GB/s of plain reading, the first before all figures, the last after.

    `torch`: token count to seconds of one bf16 expert. `rotations`: format to the experts that took turns.
    """

    machine: dict[str, Any]
    hidden: int
    intermediate: int
    experts: int
    reads: list[float] = field(default_factory=list)
    torch: dict[int, float] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    rotations: dict[str, dict[str, Any]] = field(default_factory=dict)
    complete: bool = False

    @property
    def read_gbs(self) -> float:
        """The best reading: figures, too, are the best of many calls."""
        return max(self.reads)

    @property
    def reads_differ(self) -> bool:
        """Whether the machine read at another speed at the end than at the start."""
        first, last = self.reads[0], self.reads[-1]
        return abs(first - last) > _DIFFERENT * max(first, last)

    def tflops(self, figure: Figure) -> float:
        """10^12 operations a second: two for each weight and token."""
        return 6 * self.hidden * self.intermediate * figure.tokens / figure.times.best / 1e12

    def percent_of_read(self, figure: Figure) -> float:
        """The figure's GB/s in percent of the reading's."""
        return 100 * figure.gbs / self.read_gbs

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON. `ms` is the best call's, `torch_ms` null where torch was not measured."""
        return {
            "machine": self.machine,
            "read_gbs": self.read_gbs,
            "reads_gbs": self.reads,
            "shape": {"hidden": self.hidden, "intermediate": self.intermediate, "experts": self.experts},
            "rotations": self.rotations,
            "complete": self.complete,
            "results": [self._result(figure) for figure in self.figures],
            "left_out": [asdict(left_out) for left_out in self.left_out],
        }

    def _result(self, figure: Figure) -> dict[str, Any]:
        torch = self.torch.get(figure.tokens)
        return {
            "format": figure.format,
            "isa": figure.isa,
            "tokens": figure.tokens,
            "activations": figure.activations,
            "ms": figure.times.best * 1e3,
            "median_ms": figure.times.median * 1e3,
            "calls": figure.times.calls,
            "bytes": figure.nbytes,
            "gbs": figure.gbs,
            "percent_of_read": self.percent_of_read(figure),
            "tflops": self.tflops(figure),
            "torch_ms": None if torch is None else torch * 1e3,
        }


def report_from_dict(data: Any) -> KernelReport:
    """The report that `to_dict` wrote. Raises BenchError for anything else."""
    try:
        shape = data["shape"]
        report = KernelReport(
            {**data["machine"], **{name: data["machine"][name] for name in ("cpu", "threads", "torch")}},
            hidden=int(shape["hidden"]),
            intermediate=int(shape["intermediate"]),
            experts=int(shape["experts"]),
            reads=[_positive(read) for read in data["reads_gbs"]],
            left_out=[_left_out(entry) for entry in data["left_out"]],
            rotations={
                str(name): {
                    "count": int(entry["count"]),
                    "bytes": int(entry["bytes"]),
                    "short": entry["short"],
                }
                for name, entry in data["rotations"].items()
            },
            complete=bool(data["complete"]),
        )
        for entry in data["results"]:
            best, median = _positive(entry["ms"]) / 1e3, _positive(entry["median_ms"]) / 1e3
            times = Times(best, median, int(entry["calls"]))
            tokens, nbytes = int(entry["tokens"]), int(_positive(entry["bytes"]))
            report.figures.append(
                Figure(str(entry["format"]), str(entry["isa"]), tokens, nbytes, times, _activations(entry))
            )
            if entry["torch_ms"] is not None:
                report.torch[tokens] = _positive(entry["torch_ms"]) / 1e3
    except DAMAGED as error:
        raise BenchError(
            "This is no saved run of `fiddler bench kernels`.",
            why=f"Something in it is missing or of another kind ({type(error).__name__}: {error}).",
            action="Save one with `fiddler bench kernels --json > FILE.json`.",
        ) from error
    if not report.reads or not report.figures:
        raise BenchError("The saved run has no figures.", action="Save a longer one.")
    return report


def read_report(path: Path) -> KernelReport:
    """The report in a JSON file. Raises FileError, or BenchError if it is something else."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise FileError(
            f"“{path.name}” could not be read.",
            why=f"There is no such file in {path.absolute().parent}.",
            action="Name a file that `fiddler bench kernels --json` was saved to.",
        ) from error
    except OSError as error:
        raise file_error(f"“{path.name}” could not be read.", path, error) from error
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor JSON
        raise BenchError(f"“{path.name}” is no JSON file.", why=f"{error}.") from error
    return report_from_dict(data)


def _left_out(entry: Any) -> LeftOut:
    return LeftOut(str(entry["format"]), str(entry["isa"]), int(entry["tokens"]), _positive(entry["seconds"]))


def _activations(entry: Any) -> str:
    activations = entry["activations"]
    if activations not in (EXACT, EIGHT_BIT):
        raise ValueError(f"“{EXACT}” or “{EIGHT_BIT}” in the place of {activations!r}")
    return str(activations)


def _positive(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"a positive number in the place of {value!r}")
    return number
