"""The device's times of a step on the host's clock, to tell what the host waited for."""

from __future__ import annotations

import time

import torch

from engine.accounting import Part, TimeAccount


class DeviceClock:
    """Events around the parts of a layer, read back when the host has waited for them.

    All events lie behind one whose time the host knows, so that each has a time on the host's clock.
    """

    def __init__(self, account: TimeAccount, device: torch.device) -> None:
        self._account = account
        self._stream = torch.cuda.current_stream(device)
        self._zero, self._begun, self._routed = (
            torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            for _ in range(3)
        )
        self._zero_seconds = 0.0

    def begin(self) -> None:
        """A step begins: nothing else may be under way on the stream."""
        self._zero.record(self._stream)
        self._zero.synchronize()
        self._zero_seconds = time.perf_counter()
        self._account.mark(Part.LAUNCH)

    def layer_begins(self) -> None:
        """Before the layer's dense part is launched."""
        self._begun.record(self._stream)

    def routed(self) -> None:
        """After it was launched."""
        self._routed.record(self._stream)

    def mark_routed(self, copied: torch.cuda.Event | None) -> None:
        """The host knows the router's choice: divide what passed since the launch.

        Until the dense part began, the GPU was busy with the experts of the layer before; until `copied`, the
        end of the latest copy if that layer had any, it waited for them. One that still runs is for another
        layer: nobody waited for it.
        """
        self._routed.synchronize()
        launched = self._account.last
        begun, ended = self._at(self._begun), self._at(self._routed)
        arrived = launched
        if copied is not None and copied.query():  # type: ignore[no-untyped-call]
            arrived = max(launched, self._at(copied))
        self._account.mark_parts(
            (
                (Part.COPIES, arrived - launched),
                (Part.GPU_EXPERTS, begun - arrived),
                (Part.ATTENTION, ended - max(begun, launched)),
            ),
            Part.ROUTER_SYNC,
        )

    def mark_output(self) -> None:
        """The logits are on the host."""
        self._account.mark(Part.ATTENTION)

    def _at(self, event: torch.cuda.Event) -> float:
        """When an event happened, on the host's clock."""
        milliseconds: float = self._zero.elapsed_time(event)
        return self._zero_seconds + 1e-3 * milliseconds
