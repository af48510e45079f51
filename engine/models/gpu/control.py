"""What the host tells the next layer's graph about the experts that are not residents. Torch-free.

int32 words: whether the host has results; for each expert the place of its copy; for each its first panel
there. `kernels.gpu.residual` and `kernels.gpu.experts` read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_ABSENT, _DONE = -1, -2  # in the place of a place


class Copy(NamedTuple):
    """An expert that was copied in for this layer, from its panel `first` on.

    `place`: where the graph finds it; None if it has been run already and only its result is to be added.
    """

    expert: int
    place: int | None
    first: int = 0


def control_words(experts: int) -> int:
    """How many words tell about so many experts."""
    return 1 + 2 * experts


def write_control(control: npt.NDArray[np.int32], *, results: bool, copies: Iterable[Copy] = ()) -> None:
    """Write whether the host's results count, and the experts that were copied."""
    experts = len(control) // 2
    control[0] = results
    control[1:] = _ABSENT
    for expert, place, first in copies:
        control[1 + expert] = _DONE if place is None else place
        control[1 + experts + expert] = first
