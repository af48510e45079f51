"""The device's times of a step on the host's clock, to tell what the host waited for."""

from __future__ import annotations

import time

import torch

from engine.accounting import Part, TimeAccount


class DeviceClock:
    """Events around the dense parts of the layers, read back when the host has waited for them.

    All events lie behind one whose time the host knows, so that each has a time on the host's clock.
    """

    def __init__(self, account: TimeAccount, device: torch.device) -> None:
        self._account = account
        self._stream = torch.cuda.current_stream(device)
        self._zero = _event()
        self._zero_seconds = 0.0
        self._pairs: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []  # begin and end, used in turns
        self._launched = 0  # pairs since the last mark

    def begin(self) -> None:
        """A step begins: nothing else may be under way on the stream."""
        self._launched = 0
        self._zero.record(self._stream)
        self._zero.synchronize()
        self._zero_seconds = time.perf_counter()
        self._account.mark(Part.LAUNCH)

    def dense_begins(self) -> None:
        """Before a layer's dense part, or the output layer, is launched."""
        if self._launched == len(self._pairs):
            self._pairs.append((_event(), _event()))
        self._pairs[self._launched][0].record(self._stream)

    def dense_ends(self) -> None:
        """After it was launched."""
        self._pairs[self._launched][1].record(self._stream)
        self._launched += 1

    def mark(self, copied: torch.cuda.Event | None, rest: Part) -> None:
        """The host has what the latest dense part leaves there: divide what passed since the last mark.

        The GPU was busy with dense parts, and between them with experts; until `copied`, the end of the
        latest copy if there was any, it waited for that. One that still runs is for another layer: nobody
        waited for it. What passed after the end of the latest dense part is `rest`.
        """
        pairs = self._pairs[: self._launched]
        self._launched = 0
        pairs[-1][1].synchronize()
        since = self._account.last
        arrived = since
        if copied is not None and copied.query():  # type: ignore[no-untyped-call]
            arrived = max(since, self._at(copied))
        dense = sum(max(0.0, self._at(end) - max(self._at(begin), arrived)) for begin, end in pairs)
        busy = self._at(pairs[-1][1]) - arrived
        self._account.mark_parts(
            ((Part.COPIES, arrived - since), (Part.GPU_EXPERTS, busy - dense), (Part.ATTENTION, dense)), rest
        )

    def _at(self, event: torch.cuda.Event) -> float:
        """When an event happened, on the host's clock."""
        milliseconds: float = self._zero.elapsed_time(event)
        return self._zero_seconds + 1e-3 * milliseconds


def _event() -> torch.cuda.Event:
    """An event with a time."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
