"""The exceptions of the kernels. Wrong arguments are ValueErrors; these are about the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class KernelsError(Exception):
    """The kernels cannot do what was asked: `what` happened, and `action`, what to do about it."""

    def __init__(self, what: str, action: str = "") -> None:
        super().__init__(what, action)
        self.what = what
        self.action = action

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.action) if part)


class IsaError(KernelsError):
    """An instruction set level was asked for that does not exist or that this machine does not have."""


class NativeMissingError(KernelsError, ImportError):
    """The native extension is not built, or was built for another Python or machine."""


class PoolError(KernelsError, RuntimeError):
    """A pool was used after it was closed, or in a process forked from its own."""


class WeightError(KernelsError, ValueError):
    """A weight that cannot be used: the first one, at `row`, `col` of `matrix` (such as "w1")."""

    def __init__(self, matrix: str, row: int, col: int, what: str, action: str = "") -> None:
        super().__init__(f"{matrix} {what} at row {row}, column {col}.", action)
        self.matrix = matrix
        self.row = row
        self.col = col


class NonFiniteWeightError(WeightError):
    """A weight is NaN or infinite; where a group's scale is, the position is that of its first weight."""

    def __init__(self, matrix: str, row: int, col: int) -> None:
        super().__init__(matrix, row, col, "has a weight that is NaN or infinite")


class WeightRangeError(WeightError):
    """A weight is too large for the scales (float16) of the format it is quantised to."""

    def __init__(self, matrix: str, row: int, col: int) -> None:
        super().__init__(
            matrix, row, col, "has a weight too large for 8 or 4 bits", "Keep this model in bf16."
        )


def raise_fault(fault: Any, names: Sequence[str]) -> None:
    """Raise what the native code found wrong with a weight, if anything; `names` are of its matrices."""
    if fault.found:
        error = WeightRangeError if fault.too_large else NonFiniteWeightError
        raise error(names[fault.matrix], fault.row, fault.col)
