"""Where the time of decode steps goes: parts that add up to the whole. Torch-free.

The host's time is one line, from a step's begin to its end, cut at marks; each piece goes to one part. So the
parts add up to what passed, and nothing is counted twice although CPU, copies and GPU work side by side: a
piece belongs to what the host waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Part(StrEnum):
    """What the time of a step went to."""

    ATTENTION = "attention"  # with norms, projections, routers, embedding and output layer
    ROUTER_SYNC = "router_sync"  # from the router's end until the host knows its choice
    CPU_EXPERTS = "cpu_experts"
    COPIES = "copies"  # expert weights on their way to the GPU
    GPU_EXPERTS = "gpu_experts"
    WAITING = "waiting"  # for the GPU, with none of the above under way
    LAUNCH = "launch"  # handing work to the GPU and to the CPU's threads
    PYTHON = "python"  # deciding, sampling, text, and whatever else the interpreter does

    @property
    def text(self) -> str:
        """The part in words, after "… % of the time went to"."""
        return {
            Part.ATTENTION: "attention and the other dense layers",
            Part.ROUTER_SYNC: "hearing which experts were chosen",
            Part.CPU_EXPERTS: "experts on the CPU (reading their weights from memory)",
            Part.COPIES: "copying experts to the graphics card",
            Part.GPU_EXPERTS: "experts on the graphics card",
            Part.WAITING: "waiting for the graphics card",
            Part.LAUNCH: "handing out the work",
            Part.PYTHON: "the program itself",
        }[self]


@dataclass(frozen=True)
class TimeSplit:
    """The time of `steps` decode steps: `whole` seconds, divided into `parts` (seconds, every part named)."""

    steps: int = 0
    whole: float = 0.0
    parts: Mapping[Part, float] = field(default_factory=lambda: dict.fromkeys(Part, 0.0))

    def microseconds(self) -> dict[str, float]:
        """Microseconds of an average step by part name; empty before the first step."""
        if not self.steps:
            return {}
        return {str(part): 1e6 * seconds / self.steps for part, seconds in self.parts.items()}

    @property
    def whole_microseconds(self) -> float:
        """Microseconds of an average step; 0 before the first."""
        return 1e6 * self.whole / self.steps if self.steps else 0.0

    def since(self, earlier: TimeSplit) -> TimeSplit:
        """What was added after `earlier`."""
        parts = {part: seconds - earlier.parts[part] for part, seconds in self.parts.items()}
        return TimeSplit(self.steps - earlier.steps, self.whole - earlier.whole, parts)


class TimeAccount:
    """Adds up the parts of decode steps. One thread marks; others may take snapshots.

    The time between two steps (sampling, text, whoever listens) belongs to the later one's Python, unless
    `pause` was called between them.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._parts = dict.fromkeys(Part, 0.0)
        self._whole = 0.0
        self._steps = 0
        self._step = dict.fromkeys(Part, 0.0)
        self._begun = self._last = 0.0
        self._between: float | None = None  # when the last step ended

    @property
    def last(self) -> float:
        """When the last mark was made, on the clock."""
        return self._last

    def pause(self) -> None:
        """What comes until the next step is not part of it: another conversation, a prompt."""
        self._between = None

    def begin_step(self) -> None:
        """A step begins."""
        now = self._clock()
        self._step = dict.fromkeys(Part, 0.0)
        self._begun = now if self._between is None else self._between
        self._step[Part.PYTHON] = now - self._begun
        self._last = now

    def mark(self, part: Part) -> None:
        """The time since the last mark went to `part`."""
        now = self._clock()
        self._step[part] += now - self._last
        self._last = now

    def mark_parts(self, shares: Sequence[tuple[Part, float]], rest: Part) -> None:
        """The time since the last mark went to `shares` in their order, as far as it lasts, then to `rest`.

        Seconds that are not positive take nothing: clocks of two devices agree only roughly.
        """
        now = self._clock()
        left = now - self._last
        for part, seconds in shares:
            taken = min(left, max(0.0, seconds))
            self._step[part] += taken
            left -= taken
        self._step[rest] += left
        self._last = now

    def end_step(self, *, counted: bool = True) -> None:
        """The step is over; one that is not `counted` leaves no trace (its waits could not be told apart)."""
        self.mark(Part.PYTHON)
        self._between = self._last
        if counted:
            for part, seconds in self._step.items():
                self._parts[part] += seconds
            self._whole += self._last - self._begun
            self._steps += 1

    def snapshot(self) -> TimeSplit:
        """The totals so far."""
        return TimeSplit(self._steps, self._whole, dict(self._parts))
