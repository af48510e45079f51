"""How far a taken-over matrix is from the one in the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernels.quantised import QuantisedMatrix

LARGEST_ERROR = 2.0**-8  # of a block's largest weight: what re-rounding scales may cost


@dataclass(frozen=True)
class Accuracy:
    """Errors of `blocks` blocks of up to 256 weights of a row.

    A block's error is its largest |w - w'| divided by its largest |w|, where w is the weight in float32 as
    the file defines it and w' the one that is computed with. `largest` is the largest of the blocks', `total`
    their sum. `exact`: no weight differs at all.
    """

    largest: float = 0.0
    total: float = 0.0
    blocks: int = 0
    exact: bool = True

    @property
    def mean(self) -> float:
        """The mean of the blocks' errors."""
        return self.total / self.blocks if self.blocks else 0.0

    @property
    def acceptable(self) -> bool:
        """Whether every block is within `LARGEST_ERROR`."""
        return self.largest <= LARGEST_ERROR

    @staticmethod
    def of(errors: npt.NDArray[np.float64], *, exact: bool) -> Accuracy:
        """From the errors of single blocks."""
        return Accuracy(float(errors.max(initial=0)), float(errors.sum()), errors.size, exact)

    @staticmethod
    def exact_copy(blocks: int) -> Accuracy:
        """Of a matrix that only changed its layout."""
        return Accuracy(blocks=blocks)

    @staticmethod
    def combined(parts: Iterable[Accuracy]) -> Accuracy:
        """Of all blocks of several matrices, or parts of one."""
        whole = Accuracy()
        for part in parts:
            whole = Accuracy(
                max(whole.largest, part.largest),
                whole.total + part.total,
                whole.blocks + part.blocks,
                whole.exact and part.exact,
            )
        return whole


@dataclass(frozen=True)
class Transcoded:
    """A matrix, taken over from a file."""

    matrix: QuantisedMatrix
    accuracy: Accuracy
