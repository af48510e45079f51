"""Which rows or columns get a number, so that no two numbers touch."""

from __future__ import annotations

_STEPS = (1, 5)  # and their tenfolds


def ticks(count: int, cell: float, label: float, before: int = 0) -> list[int]:
    """Indices (from 0) to number, for `count` cells of size `cell` and numbers of size `label`.

    The first, round numbers after it, and the last, before which a round one gives way: 1, 5, 10, …, 32. The
    numbers begin after `before`.
    """
    if count <= 0 or cell <= 0:
        return []
    step = _step(max(1.0, label / cell))
    chosen = [0]
    for index in range(count):
        if (before + index + 1) % step == 0 and (index - chosen[-1]) * cell >= label:
            chosen.append(index)
    last = count - 1
    if len(chosen) > 1 and 0 < (last - chosen[-1]) * cell < label:
        chosen.pop()
    if last != chosen[-1] and (last - chosen[-1]) * cell >= label:
        chosen.append(last)
    return chosen


def _step(least: float) -> int:
    """The smallest of 1, 5, 10, 50, 100, … that is not below `least`."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power >= least:
                return step * power
        power *= 10
