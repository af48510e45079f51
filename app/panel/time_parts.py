"""Where the time of an answer went, in words: the parts, a sentence for the largest, and what helps."""

from __future__ import annotations

from dataclasses import dataclass

from app.answers import percent_words, short_seconds
from app.i18n import tr, tr_noop
from engine.accounting import Part, TimeSplit

_NAMES = {
    Part.CPU_EXPERTS: tr_noop("Memory, for the CPU's experts"),
    Part.COPIES: tr_noop("Copies to the graphics card"),
    Part.GPU_EXPERTS: tr_noop("Experts on the graphics card"),
    Part.ATTENTION: tr_noop("Attention, dense layers"),
    Part.ROUTER_SYNC: tr_noop("Hearing the router's choice"),
    Part.WAITING: tr_noop("Waiting for the graphics card"),
    Part.LAUNCH: tr_noop("Handing out work"),
    Part.PYTHON: tr_noop("The program itself"),
}
_SENTENCES = {
    Part.CPU_EXPERTS: tr_noop("{percent} waiting for memory to reach the CPU's experts."),
    Part.COPIES: tr_noop("{percent} waiting for experts to be copied to the graphics card."),
    Part.GPU_EXPERTS: tr_noop("{percent} computing experts on the graphics card."),
    Part.ATTENTION: tr_noop("{percent} in attention and the other dense layers."),
    Part.ROUTER_SYNC: tr_noop("{percent} waiting to hear which experts were chosen."),
    Part.WAITING: tr_noop("{percent} waiting for the graphics card to finish."),
    Part.LAUNCH: tr_noop("{percent} handing out the work to the CPU and the graphics card."),
    Part.PYTHON: tr_noop("{percent} in the program itself: choosing words and showing them."),
}
_ADVICE = {
    Part.CPU_EXPERTS: tr_noop(
        "Fewer bits per weight, faster memory, or more experts on a graphics card would help."
    ),
    Part.COPIES: tr_noop("More experts in the graphics card's memory, or fewer bits per weight, would help."),
    Part.ATTENTION: tr_noop("Attention takes longer as the conversation grows, the other layers do not."),
}
# Experts first, wherever they ran. It never changes: a part keeps its place while an answer is written.
ORDER = tuple(_NAMES)


@dataclass(frozen=True)
class TimePart:
    """One part of the time: its name, its share of the whole (0 to 1), and seconds of an average token."""

    part: Part
    name: str
    fraction: float
    seconds: float

    @property
    def percent(self) -> str:
        """Its share in words."""
        return percent_words(self.fraction)

    @property
    def figures(self) -> str:
        """`71% · 52 ms`: its share, and its time in an average token."""
        return f"{self.percent} · {short_seconds(self.seconds)}"


def time_parts(split: TimeSplit) -> tuple[TimePart, ...]:
    """The parts that took any time, in the bar's order; none before the first step."""
    whole = sum(max(0.0, seconds) for seconds in split.parts.values())
    if not split.steps or whole <= 0:
        return ()
    return tuple(
        TimePart(part, tr(_NAMES[part]), split.parts[part] / whole, split.parts[part] / split.steps)
        for part in ORDER
        if split.parts[part] > 0
    )


def largest(parts: tuple[TimePart, ...]) -> str:
    """A sentence for the largest part; empty when there is none."""
    if not parts:
        return ""
    first = max(parts, key=lambda part: part.fraction)
    return tr(_SENTENCES[first.part], percent=first.percent)


def what_helps(parts: tuple[TimePart, ...]) -> str:
    """What would shorten the largest part, where the user can do something about it."""
    if not parts:
        return ""
    first = max(parts, key=lambda part: part.fraction)
    return tr(_ADVICE[first.part]) if first.part in _ADVICE else ""
