"""The device's times of a step on the host's clock, to tell what the host waited for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch

from engine.accounting import Part, TimeAccount


class Span(NamedTuple):
    """What lies between two events of the compute stream."""

    begin: torch.cuda.Event
    end: torch.cuda.Event

    @staticmethod
    def captured() -> Span:
        """For a graph, each replay of which happens anew."""
        return Span(_event(external=True), _event(external=True))


class DeviceClock:
    """Events around the graphs that the host waits for, read back when it has.

    All events lie behind one whose time the host knows, so that each has a time on the host's clock.
    """

    def __init__(self, account: TimeAccount, device: torch.device) -> None:
        self._account = account
        self._stream = torch.cuda.current_stream(device)
        self._zero = _event()
        self._zero_seconds = 0.0
        self._spans: list[Span] = []  # of the graphs, used in turns
        self._launched = 0  # spans since the last mark
        self._experts: list[Span] = []  # within them

    def begin(self) -> None:
        """A step begins: nothing else may be under way on the stream."""
        self._launched = 0
        self._experts.clear()
        self._zero.record(self._stream)
        self._zero.synchronize()
        self._zero_seconds = time.perf_counter()
        self._account.mark(Part.LAUNCH)

    def graph_begins(self) -> None:
        """Before a graph is launched."""
        if self._launched == len(self._spans):
            self._spans.append(Span(_event(), _event()))
        self._spans[self._launched].begin.record(self._stream)

    def graph_ends(self, experts: Sequence[Span] = ()) -> None:
        """After it was launched; `experts` lie in it, all the rest is dense."""
        self._spans[self._launched].end.record(self._stream)
        self._experts += experts
        self._launched += 1

    def mark(self, copied: torch.cuda.Event | None, rest: Part) -> None:
        """The host has what the latest graph leaves there: divide what passed since the last mark.

        The GPU was busy with dense parts, and between them with experts; until `copied`, the end of the
        latest copy if there was any, it waited for that. One that still runs is for another layer: nobody
        waited for it. What passed after the end of the latest graph is `rest`.
        """
        spans, experts = self._spans[: self._launched], list(self._experts)
        self._launched = 0
        self._experts.clear()
        spans[-1].end.synchronize()
        since = self._account.last
        arrived = since
        if copied is not None and copied.query():  # type: ignore[no-untyped-call]
            arrived = max(since, self._at(copied))
        dense = self._within(spans, arrived) - self._within(experts, arrived)
        busy = self._at(spans[-1].end) - arrived
        self._account.mark_parts(
            ((Part.COPIES, arrived - since), (Part.GPU_EXPERTS, busy - dense), (Part.ATTENTION, dense)), rest
        )

    def _within(self, spans: Sequence[Span], since: float) -> float:
        """Seconds of some spans after a time on the host's clock."""
        return sum(max(0.0, self._at(span.end) - max(self._at(span.begin), since)) for span in spans)

    def _at(self, event: torch.cuda.Event) -> float:
        """When an event happened, on the host's clock."""
        milliseconds: float = self._zero.elapsed_time(event)
        return self._zero_seconds + 1e-3 * milliseconds


def _event(external: bool = False) -> torch.cuda.Event:
    """An event with a time; an external one is recorded by each replay of the graph it was captured in."""
    return torch.cuda.Event(enable_timing=True, external=external)  # type: ignore[no-untyped-call]
