"""Residents on their way to the GPU while the model is loaded."""

from __future__ import annotations

import threading

from engine.experts.bank import ExpertBank
from engine.experts.ring import PinnedRing
from engine.experts.slots import GpuExperts


class Placer:
    """Called with each expert that lies in the bank, copies it to its place if it is a resident.

    From any thread, one copy at a time. Without `keep` the bank gives a resident's memory back at once.
    """

    def __init__(self, bank: ExpertBank, experts: GpuExperts, *, keep: bool = True) -> None:
        self._bank = bank
        self._experts = experts
        self._keep = keep
        self._lock = threading.Lock()
        self._ring = PinnedRing() if experts.device.type == "cuda" else None

    def __call__(self, layer: int, expert: int) -> None:
        """Copy the expert if it has a place; its block is not needed for that any more afterwards."""
        place = self._experts.place(layer, expert)
        if place is None:
            return
        block = self._bank.block(layer, expert)
        with self._lock:
            if self._ring is None:
                self._experts.store(place, block)
            else:
                self._ring.send(block, self._experts.block(place))
        if not self._keep:
            self._bank.drop(layer, expert)
