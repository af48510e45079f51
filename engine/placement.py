"""Which experts start in the GPU's memory. Pure functions over numbers; needs numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


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


def place_popular(popularity: npt.NDArray[np.float64], slots: int) -> Placement:
    """The `slots` most popular experts of all layers: the paper's placement.

    Ties go to the layer with fewer residents, then to the lower layer and expert: with no popularity at all
    the residents are spread evenly. `slots` beyond the number of experts places all of them.
    """
    if slots < 0:
        raise ValueError(f"a placement cannot have {slots} slots")
    layers, experts = popularity.shape
    # Rank of each expert among the equally popular ones of its layer: spreads ties over the layers.
    order_in_layer = np.argsort(-popularity, axis=1, kind="stable")
    rank = np.empty_like(order_in_layer)
    np.put_along_axis(rank, order_in_layer, np.broadcast_to(np.arange(experts), rank.shape), axis=1)
    layer = np.broadcast_to(np.arange(layers)[:, None], rank.shape)
    order = np.lexsort((layer.ravel(), rank.ravel(), -popularity.ravel()))
    resident = np.zeros(popularity.shape, dtype=np.bool_)
    resident.ravel()[order[:slots]] = True
    return Placement(resident)


def place_uniform(layers: int, experts: int, slots: int) -> Placement:
    """The same number of experts in every layer (±1), the first of each, where popularity is unknown."""
    return place_popular(np.ones((layers, experts)), slots)
