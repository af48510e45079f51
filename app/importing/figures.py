"""Whether an answer's settings and figures from a file can be kept: they are stored as they are."""

from __future__ import annotations

import math
from typing import Any

_DEEPEST = 20  # nested objects and arrays; ours have six


def is_keepable(value: dict[str, Any]) -> bool:
    """Whether `value` can be written as JSON again: no infinities, nothing nested without end."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return False
        if isinstance(item, dict | list):
            if depth == _DEEPEST:
                return False
            inner = item.values() if isinstance(item, dict) else item
            waiting += [(part, depth + 1) for part in inner]
    return True
