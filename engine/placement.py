"""Which experts start in the GPU's memory. Pure functions over numbers; needs numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Seconds that a layer takes longer if the host must hear its router's choice, submit work and launch what
# follows. H200 with 16 cores: Mixtral in 4 bits with 218 of 256 experts on the GPU took 14.4 ms a token where
# weights account for 8.3, in 32 layers.
HOST_TURN = 150e-6
_TIE = 1e-9  # of a popularity: decides only between placements that are worth the same


@dataclass(frozen=True)
class Placement:
    """`resident`, bool [layers, experts]: True where the expert's weights are to lie in the GPU's memory."""

    resident: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.resident.ndim != 2 or self.resident.dtype != np.bool_:
            raise ValueError("a placement is a boolean table [layers, experts]")

    @property
    def count(self) -> int:
        """How many experts are resident."""
        return int(self.resident.sum())


def place_nothing(layers: int, experts: int) -> Placement:
    """Every expert on the CPU."""
    return Placement(np.zeros((layers, experts), dtype=np.bool_))


def place_popular(popularity: npt.NDArray[np.float64], slots: int, whole: float = 0.0) -> Placement:
    """`slots` experts: the most popular ones, as in the paper, or whole layers where these are worth more.

    Where all experts of a layer are on the GPU the host need not hear what its router chose, hand out work
    and wait: a layer that lacks even an unpopular expert pays for that with every token. So this maximises
    the popularity that is placed plus `whole` for each layer that is.

    Args:
        popularity: [layers, experts], the chance that a token chooses an expert.
        slots: how many to place; beyond the number of experts, all of them.
        whole: what a whole layer is worth, in executions of an expert on the CPU per token.

    Ties are broken so that whole layers lie apart, with layers between them that can begin with copies, and
    so that the others have equally many residents. By dynamic programming over the layers: the most that the
    layers so far can have with so many slots.
    """
    if slots < 0:
        raise ValueError(f"a placement cannot have {slots} slots")
    layers, experts = popularity.shape
    slots = min(slots, popularity.size)
    order = np.argsort(-popularity, axis=1, kind="stable")
    values = np.zeros((layers, experts + 1))  # of so many experts of a layer, the most popular ones
    values[:, 1:] = np.cumsum(np.take_along_axis(popularity, order, axis=1), axis=1)
    values -= _TIE * np.arange(experts + 1) ** 2
    values[:, -1] += whole - _TIE * experts * np.argsort(np.argsort(_spread(layers))) / layers
    most = np.full(slots + 1, -np.inf)
    most[0] = 0.0
    taken = np.zeros((layers, slots + 1), dtype=np.int32)
    for layer in range(layers):
        # Fewer slots for the layers up to here would be more than the others can take.
        least = max(0, slots - (layers - 1 - layer) * experts)
        better = np.full(slots + 1, -np.inf)
        for count in range(min(experts, slots) + 1):
            begin, end = max(count, least), min(layer * experts + count, slots) + 1
            worth = most[begin - count : max(begin, end) - count] + values[layer, count]
            gains = worth > better[begin:end]
            np.copyto(better[begin:end], worth, where=gains)
            np.copyto(taken[layer, begin:end], count, where=gains)
        most = better
    resident = np.zeros(popularity.shape, dtype=np.bool_)
    for layer in reversed(range(layers)):
        count = int(taken[layer, slots])
        resident[layer, order[layer, :count]] = True
        slots -= count
    return Placement(resident)


def place_calibrated(popularity: npt.NDArray[np.float64], slots: int, cpu_seconds: float) -> Placement:
    """`place_popular` on a machine whose CPU takes `cpu_seconds` for an expert and one token."""
    return place_popular(popularity, slots, HOST_TURN / cpu_seconds)


def place_uniform(layers: int, experts: int, slots: int) -> Placement:
    """Where popularity is unknown: as many whole layers as there are, and the rest spread over the others."""
    return place_popular(np.ones((layers, experts)), slots, whole=1.0)


def _spread(layers: int) -> npt.NDArray[np.float64]:
    """A number for each layer: those with the smallest so many lie about evenly apart."""
    golden = (5**0.5 - 1) / 2
    return np.asarray(np.arange(layers) * golden % 1, dtype=np.float64)
