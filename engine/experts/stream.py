"""Copying missing experts to the GPU while it computes with others."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.experts.bank import ExpertBank
from engine.experts.slots import GpuExperts
from engine.stats import HitCounters

_CHUNK = 32 << 20  # bytes of a staging buffer: large enough for full PCIe speed, small enough to pin anywhere
_RING = 3  # staging buffers: one filled by the host, one on its way, one between


class ExpertStream(Protocol):
    """Brings experts into slots of the GPU."""

    def fetch(self, layer: int, expert: int) -> int:
        """Start the copy of an expert that is not on the GPU; its place, for `wait` and `release`."""
        ...

    def wait(self, place: int) -> None:
        """Make the compute stream wait until the place, a slot or a resident's, is filled."""
        ...

    def release(self, place: int) -> None:
        """Say that all work with the place is enqueued: a later fetch may overwrite it after that work."""
        ...


class DirectStream:
    """Without a GPU: experts are unpacked into the slots at once."""

    def __init__(self, bank: ExpertBank, experts: GpuExperts, counters: HitCounters) -> None:
        self._bank = bank
        self._experts = experts
        self._counters = counters

    def fetch(self, layer: int, expert: int) -> int:
        """Unpack the expert into a slot."""
        place = self._experts.claim(layer, expert)
        self._experts.store(place, self._bank.block(layer, expert))
        self._counters.add_bytes(self._bank.shape.nbytes)
        return place

    def wait(self, place: int) -> None:
        """Nothing to wait for."""

    def release(self, place: int) -> None:
        """Note the use."""
        self._experts.touch(place)


class CudaStream:
    """With a GPU: packed blocks are copied on a stream of their own and unpacked there.

    The bank's memory is not pinned, and a pageable copy runs at a tenth of the speed: blocks go through a
    small ring of pinned buffers, the host filling one while another is on its way.
    """

    def __init__(self, bank: ExpertBank, experts: GpuExperts, counters: HitCounters) -> None:
        self._bank = bank
        self._experts = experts
        self._counters = counters
        self._stream = torch.cuda.Stream(experts.device)  # type: ignore[no-untyped-call]
        self._landing = torch.empty(bank.shape.nbytes, dtype=torch.uint8, device=experts.device)
        self._ring = [_StagingBuffer() for _ in range(_RING)]
        self._next = 0
        self._filled: dict[int, torch.cuda.Event] = {}
        self._released: dict[int, torch.cuda.Event] = {}

    def fetch(self, layer: int, expert: int) -> int:
        """Enqueue the copy and the unpacking into a slot."""
        place = self._experts.claim(layer, expert)
        with torch.cuda.stream(self._stream):
            self._copy(self._bank.block(layer, expert))
            if place in self._released:
                self._stream.wait_event(self._released[place])
            self._experts.store(place, self._landing)
            self._filled[place] = self._stream.record_event()
        self._counters.add_bytes(self._bank.shape.nbytes)
        return place

    def wait(self, place: int) -> None:
        """Order the current stream's later work after the copy."""
        if place in self._filled:
            torch.cuda.current_stream(self._experts.device).wait_event(self._filled[place])

    def release(self, place: int) -> None:
        """Order a later copy into the place after the current stream's work so far."""
        if self._experts.touch(place):
            self._released[place] = torch.cuda.current_stream(self._experts.device).record_event()

    def _copy(self, block: torch.Tensor) -> None:
        """The block to the landing buffer, on the current stream."""
        for start in range(0, len(block), _CHUNK):
            part = block[start : start + _CHUNK]
            staging = self._ring[self._next]
            self._next = (self._next + 1) % _RING
            staging.send(part, self._landing[start : start + len(part)])


class _StagingBuffer:
    """One pinned buffer, and the event after which the host may write it again."""

    def __init__(self) -> None:
        self._buffer = torch.empty(_CHUNK, dtype=torch.uint8, pin_memory=True)
        self._sent: torch.cuda.Event | None = None

    def send(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy host bytes to the device through the buffer, on the current stream."""
        if self._sent is not None:
            self._sent.synchronize()
        part = self._buffer[: len(source)]
        part.copy_(source)
        target.copy_(part, non_blocking=True)
        self._sent = torch.cuda.current_stream(target.device).record_event()
