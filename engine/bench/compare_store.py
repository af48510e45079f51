"""The file that a comparison is kept in: one record for each point, so that a later run continues it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.bench.errors import BenchError
from engine.bench.rates import Rates
from engine.errors import DAMAGED
from engine.files import file_error, write_atomically

_VERSION = 1


@dataclass(frozen=True)
class Setup:
    """What all points of one comparison have in common; figures of another setup are not comparable."""

    machine: dict[str, Any]
    model: str
    precision: str
    vram_budget: int | None  # bytes; None: what was free
    routing: str
    exact_activations: bool = False  # whether kernels that round activations to 8 bits were forbidden

    @property
    def key(self) -> str:
        """The setup as a text that only equal setups have."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Record:
    """One point. `seconds`: of a prompt, or of a step; `floor`: what bandwidth allows for it.

    `executions`: experts that ran for a step (of all beams together); `steps`: over how many it is the mean.
    `resident`: the share of the model's experts on the GPU. `rates`: of the run that measured it.
    """

    scenario: str
    policy: str
    seconds: float
    floor: float
    executions: float
    steps: int
    resident: float
    rates: Rates

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"rates": self.rates.to_dict()}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Record:
        """What `to_dict` wrote. Raises KeyError, TypeError or ValueError for anything else."""
        return Record(
            str(data["scenario"]),
            str(data["policy"]),
            _number(data["seconds"], positive=True),
            _number(data["floor"]),
            _number(data["executions"]),
            int(data["steps"]),
            _number(data["resident"]),
            Rates.from_dict(data["rates"]),
        )


@dataclass
class Comparison:
    """The records of one setup by (scenario, policy), and the command that measured the last of them.

    What the file does not keep: `left_out`, points in words for which this run had no time; `complete`,
    whether this run measured all that it was asked for.
    """

    setup: Setup
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    command: str = ""
    left_out: list[str] = field(default_factory=list)
    complete: bool = True

    def find(self, scenario: str, policy: str) -> Record | None:
        """A point's record, if it was measured."""
        return self.records.get((scenario, policy))

    def add(self, record: Record) -> None:
        """Add a record, or replace an older one of the same point."""
        self.records[record.scenario, record.policy] = record

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "setup": asdict(self.setup),
            "command": self.command,
            "records": [record.to_dict() for record in self.records.values()],
        }


class CompareStore:
    """A file of comparisons, each of another setup; read as a whole, written after each point.

    Two runs may share it: each keeps what the other has written meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._comparisons: dict[str, Comparison] = {}
        self._measured: set[tuple[str, str, str]] = set()  # (setup, scenario, policy) of this run
        for comparison in _read(path):
            self._comparisons[comparison.setup.key] = comparison

    def open(self, setup: Setup) -> Comparison:
        """The comparison of a setup, with what earlier runs measured."""
        return self._comparisons.setdefault(setup.key, Comparison(setup))

    def all(self) -> list[Comparison]:
        """Every comparison in the file, oldest first."""
        return list(self._comparisons.values())

    def add(self, comparison: Comparison, record: Record) -> None:
        """Add what was measured, and save. Raises as `save`."""
        comparison.add(record)
        self._measured.add((comparison.setup.key, record.scenario, record.policy))
        self.save()

    def save(self) -> None:
        """Write everything, with what others wrote meanwhile.

        Raises FileError, or BenchError for a file of something else; it is left as it was.
        """
        for theirs in _read(self._path):
            ours = self._comparisons.setdefault(theirs.setup.key, theirs)
            for record in theirs.records.values():
                if (theirs.setup.key, record.scenario, record.policy) not in self._measured:
                    ours.add(record)
        data = {"version": _VERSION, "comparisons": [each.to_dict() for each in self.all()]}
        write_atomically(self._path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _read(path: Path) -> Iterator[Comparison]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return
    except OSError as error:
        raise file_error(f"“{path.name}” could not be read.", path, error) from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error
    try:
        data = json.loads(text)
        if data["version"] != _VERSION:
            raise ValueError(f"version {data['version']!r}")
        for entry in data["comparisons"]:
            comparison = Comparison(_setup(entry["setup"]), command=str(entry.get("command", "")))
            for record in entry["records"]:
                comparison.add(Record.from_dict(record))
            yield comparison
    except DAMAGED as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error


def _setup(data: dict[str, Any]) -> Setup:
    setup = Setup(**data)
    for name in ("cpu", "threads", "isa", "gpu"):
        setup.machine[name]
    return setup


def _number(value: Any, *, positive: bool = False) -> float:
    number = float(value)
    if not 0 <= number < float("inf") or (positive and number == 0):
        raise ValueError(f"a time or a count in the place of {value!r}")
    return number


def _unreadable(path: Path, why: str) -> BenchError:
    return BenchError(
        f"“{path.name}” is no file of `fiddler bench compare`.",
        why=f"{why}.",
        action="Name another file with --results; a new one is made.",
    )
