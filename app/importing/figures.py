"""Whether an answer's settings and figures from a file can be kept: what shows them relies on their types."""

from __future__ import annotations

import dataclasses
from typing import Any

from app.storage.figures import params_from_json, stats_from_json
from app.storage.rows import dump_json

_FAULTS = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)


def sound_params(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """`value` if the program can show it, else None."""
    try:
        dump_json(value)
        return None if value is None or params_from_json(value) is None else value
    except _FAULTS:
        return None


def sound_stats(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """`value` if the program can show it, else None."""
    if value is None:
        return None
    try:
        dump_json(value)
        stats = stats_from_json(value)
    except _FAULTS:
        return None
    for field in dataclasses.fields(stats):
        if isinstance(field.default, int | float) and not _is_number(getattr(stats, field.name)):
            return None
    optional = (stats.seed, stats.prediction_error)
    return value if all(item is None or _is_number(item) for item in optional) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
