"""Copying missing experts to the GPU while it computes with others."""

from __future__ import annotations

import time
from typing import Protocol

import torch

from engine.experts.bank import ExpertBank
from engine.experts.copy_timer import CopyTimer
from engine.experts.panels import Panels, byte_ranges
from engine.experts.ring import PinnedRing
from engine.experts.slots import GpuExperts
from engine.stats import HitCounters


class ExpertStream(Protocol):
    """Brings experts, or panels of them, into slots of the GPU.

    As many fetches as there are slots may wait for their `release`; one more takes the slot of the first.
    """

    def fetch(self, layer: int, expert: int, panels: Panels | None = None) -> int:
        """Start the copy of an expert; its place, for `wait` and `release`.

        With `panels` only they come (each lies where it lies in the whole block), and the expert does not
        count as present. One that is there as a whole is not copied again.
        """
        ...

    def wait(self, place: int) -> None:
        """Make the compute stream wait until the place, a slot or a resident's, is filled."""
        ...

    def release(self, place: int) -> None:
        """Say that all work with the place is enqueued: a later fetch may overwrite it after that work."""
        ...

    def take_copy_seconds(self) -> float:
        """How long the copies took that ended since the last call. Never waits."""
        ...

    @property
    def last_copy(self) -> torch.cuda.Event | None:
        """The end of the latest copy, with its time; None where there is no GPU."""
        ...


class DirectStream:
    """Without a GPU: experts are copied into the slots at once."""

    def __init__(self, bank: ExpertBank, experts: GpuExperts, counters: HitCounters) -> None:
        self._bank = bank
        self._experts = experts
        self._counters = counters
        self._seconds = 0.0

    def fetch(self, layer: int, expert: int, panels: Panels | None = None) -> int:
        """Copy the expert, or some panels, into a slot."""
        there = self._experts.place(layer, expert)
        if there is not None:
            self._experts.touch(there)
            return there
        started = time.perf_counter()
        ranges = byte_ranges(self._bank.shape, panels)
        with self._experts.claimed(layer, expert, whole=panels is None) as place:
            source, target = self._bank.block(layer, expert), self._experts.block(place)
            for first, end in ranges:
                target[first:end].copy_(source[first:end])
        self._counters.add_bytes(sum(end - first for first, end in ranges))
        self._seconds += time.perf_counter() - started
        return place

    def wait(self, place: int) -> None:
        """Nothing to wait for."""

    def release(self, place: int) -> None:
        """Note the use."""
        self._experts.touch(place)

    def take_copy_seconds(self) -> float:
        """The time spent in `fetch`."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    @property
    def last_copy(self) -> torch.cuda.Event | None:
        """None."""
        return None


class CudaStream:
    """With a GPU: packed blocks are copied on a stream of their own.

    Straight from the bank's memory where that is pinned, and through a ring of pinned buffers where it is
    not.
    """

    def __init__(self, bank: ExpertBank, experts: GpuExperts, counters: HitCounters) -> None:
        self._bank = bank
        self._experts = experts
        self._counters = counters
        self._stream = torch.cuda.Stream(experts.device)  # type: ignore[no-untyped-call]
        self._ring = PinnedRing()
        self._timer = CopyTimer(lambda: torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
        self._filled: dict[int, torch.cuda.Event] = {}
        self._released: dict[int, torch.cuda.Event] = {}

    def fetch(self, layer: int, expert: int, panels: Panels | None = None) -> int:
        """Enqueue the copies into a slot."""
        there = self._experts.place(layer, expert)
        if there is not None:
            self._experts.touch(there)
            return there
        ranges = byte_ranges(self._bank.shape, panels)
        pinned = self._bank.pinned(layer, expert)
        with (
            self._experts.claimed(layer, expert, whole=panels is None) as place,
            torch.cuda.stream(self._stream),
        ):
            if place in self._released:
                self._stream.wait_event(self._released[place])
            source, target = self._bank.block(layer, expert), self._experts.block(place)
            with self._timer.timing():
                for first, end in ranges:
                    self._copy(source[first:end], target[first:end], pinned)
            _record(self._filled, place, self._stream)
        self._counters.add_bytes(sum(end - first for first, end in ranges))
        return place

    def wait(self, place: int) -> None:
        """Order the current stream's later work after the copy."""
        if place in self._filled:
            torch.cuda.current_stream(self._experts.device).wait_event(self._filled[place])

    def release(self, place: int) -> None:
        """Order a later copy into the place after the current stream's work so far."""
        if self._experts.touch(place):
            _record(self._released, place, torch.cuda.current_stream(self._experts.device))

    def take_copy_seconds(self) -> float:
        """From the copies' timing events."""
        return self._timer.take_seconds()

    @property
    def last_copy(self) -> torch.cuda.Event | None:
        """From the copies' timing events."""
        return self._timer.last

    def _copy(self, source: torch.Tensor, target: torch.Tensor, pinned: bool) -> None:
        if not pinned:
            self._ring.send(source, target)
            return
        # In one piece: each costs the host 40 µs, and nothing small waits behind it that could be overtaken.
        target.copy_(source, non_blocking=True)


def _record(events: dict[int, torch.cuda.Event], place: int, stream: torch.cuda.Stream) -> None:
    """Record the event of a place on a stream: what waits for it from now on waits for the work so far."""
    if place not in events:
        events[place] = torch.cuda.Event()  # type: ignore[no-untyped-call]
    events[place].record(stream)
