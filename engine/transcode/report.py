"""What taking over a file's experts would cost, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.transcode.accuracy import Accuracy
from kernels.formats import WeightFormat

_MOST_REASONS = 8  # a damaged file may have one for each tensor


@dataclass(frozen=True)
class TensorReport:
    """One tensor. `accuracy` is None where it was refused before it could be measured.

    `refused` says why in half a sentence, "" if it is not; `instead`, what to use.
    """

    name: str
    layer: int
    matrix: str  # "w1", "w3" or "w2"
    format_in: str  # as the file calls it
    format_out: WeightFormat | None
    accuracy: Accuracy | None
    refused: str = ""
    instead: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "layer": self.layer,
            "matrix": self.matrix,
            "format_in": self.format_in,
            "format_out": self.format_out and str(self.format_out),
            **_errors(self.accuracy),
            "refused": self.refused or None,
            "instead": self.instead or None,
        }


@dataclass(frozen=True)
class TranscodeReport:
    """All expert tensors of a file or folder."""

    path: Path
    tensors: tuple[TensorReport, ...]

    @property
    def accuracy(self) -> Accuracy:
        """Of all tensors that can be taken over."""
        return Accuracy.combined(t.accuracy for t in self.tensors if t.accuracy and not t.refused)

    @property
    def refused(self) -> tuple[TensorReport, ...]:
        """The tensors that cannot be taken over."""
        return tuple(t for t in self.tensors if t.refused)

    @property
    def formats(self) -> frozenset[WeightFormat]:
        """What the other tensors become."""
        return frozenset(t.format_out for t in self.tensors if t.format_out and not t.refused)

    @property
    def complete(self) -> bool:
        """Whether all experts can be taken over, into one format."""
        return not self.refused and len(self.formats) == 1

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "path": str(self.path),
            "complete": self.complete,
            "formats": sorted(str(f) for f in self.formats),
            **_errors(self.accuracy if self.formats else None),
            "refused": len(self.refused),
            "tensors": [tensor.to_dict() for tensor in self.tensors],
        }

    def lines(self) -> tuple[str, ...]:
        """A table, tensors of the same kind together, and what it means."""
        groups: dict[tuple[str, str, str, str], list[TensorReport]] = {}
        for t in self.tensors:
            groups.setdefault((t.matrix, t.format_in, str(t.format_out or "–"), t.refused), []).append(t)
        rows = [("matrix", "layers", "in the file", "here", "largest error", "mean error", "")]
        for (matrix, format_in, format_out, refused), members in groups.items():
            layers = _ranges({t.layer for t in members})
            rows.append(
                (matrix, layers, format_in, format_out, *_cells(members), "refused" if refused else "")
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = (
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        )
        return (*table, "", *self._conclusion())

    def _conclusion(self) -> tuple[str, ...]:
        if self.complete:
            form, accuracy = str(next(iter(self.formats))), self.accuracy
            if accuracy.exact:
                return (f"All experts can be taken over as {form}, exactly.",)
            return (
                f"All experts can be taken over as {form}: every value is kept, and scales are rounded.",
                f"No weight changes by more than {accuracy.largest:.3%} of the largest of the up to 256 "
                "beside it.",
            )
        if not self.refused:
            formats = " and ".join(sorted(str(f) for f in self.formats))
            return (f"The experts cannot be taken over together: they would be in {formats}.",)
        reasons = dict.fromkeys((t.refused, t.instead) for t in self.refused)
        lines = [f"{len(self.refused)} of {len(self.tensors)} expert tensors cannot be taken over:"]
        for reason, instead in list(reasons)[:_MOST_REASONS]:
            example = next(t.name for t in self.refused if t.refused == reason)
            lines += [f"- {example}: {reason}.", f"  {instead}"]
        if len(reasons) > _MOST_REASONS:
            lines.append(f"- and {len(reasons) - _MOST_REASONS} more reasons; --json lists all.")
        return tuple(lines)


def _errors(accuracy: Accuracy | None) -> dict[str, Any]:
    if accuracy is None:
        return {"largest_error": None, "mean_error": None, "exact": False}
    return {"largest_error": accuracy.largest, "mean_error": accuracy.mean, "exact": accuracy.exact}


def _cells(members: list[TensorReport]) -> tuple[str, str]:
    """The two errors of the tensors of a row."""
    measured = [t.accuracy for t in members if t.accuracy is not None]
    if not measured:
        return "–", "–"
    accuracy = Accuracy.combined(measured)
    if accuracy.exact:
        return "exact", "exact"
    return f"{accuracy.largest:.3%}", f"{accuracy.mean:.3%}"


def _ranges(numbers: Iterable[int]) -> str:
    """{0, 1, 2, 5} as "0–2, 5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
