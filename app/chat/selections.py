"""Keeps a selection on the same words while the text around them is rendered anew. Pure text, no Qt.

Qt counts places in UTF-16 units: `units` makes a string with one character for each.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import takewhile

COMPARED = 600  # characters that are compared one by one; longer changes are taken as a whole


def units(text: str) -> str:
    """The text with two surrogates in the place of each character that Qt counts as two."""
    if text.isascii():
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(data[place] | data[place + 1] << 8) for place in range(0, len(data), 2))


def from_units(text: str) -> str:
    """The inverse of `units`."""
    return (
        text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def moved(place: int, before: str, after: str) -> int:
    """Where the place between two characters of `before` is in `after`, which says nearly the same."""
    if place <= 0:
        return place
    head = _common(before, after)
    if place <= head:
        return place
    tail = _common(before[head:][::-1], after[head:][::-1])
    if place >= len(before) - tail:
        return place + len(after) - len(before)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    place -= head
    if max(len(old), len(new)) > COMPARED:
        return head + min(place, len(new))
    for kind, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if place <= end:
            within = place - start
            return head + (new_start + within if kind == "equal" else min(new_start + within, new_end))
    return head + len(new)


def _common(first: str, second: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
