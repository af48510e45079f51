"""What the host tells the next layer's graph: words that `kernels.gpu.residual` reads. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_BITS = 64  # experts in a word


def control_words(experts: int) -> int:
    """How many int64 words tell about so many experts: one whether the host has results, and the marks."""
    return 1 + -(-experts // _BITS)


def write_control(control: npt.NDArray[np.int64], *, results: bool, streamed: Sequence[int] = ()) -> None:
    """Write whether the host's results count, and mark the experts that were streamed."""
    control[:] = 0
    control[0] = results
    marks = control[1:].view(np.uint64)  # a word's last expert has the bit of the sign
    for expert in streamed:
        marks[expert // _BITS] |= np.uint64(1 << expert % _BITS)
