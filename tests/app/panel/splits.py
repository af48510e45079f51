"""Where the time goes in the tests of the panel."""

from __future__ import annotations

from engine.accounting import Part, TimeSplit


def split_of(steps: int = 10, **seconds: float) -> TimeSplit:
    """A split of the named parts' seconds."""
    parts = dict.fromkeys(Part, 0.0) | {Part(name): value for name, value in seconds.items()}
    return TimeSplit(steps, sum(parts.values()), parts)


BUSY = split_of(cpu_experts=7.1, attention=1.5, router_sync=0.2, launch=0.4, python=0.8)
