"""Turn a request's parameters and an answer's figures into JSON objects and back.

The database and the JSON export both keep these objects, so a field added later is a key that old rows lack:
reading fills in the default.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from app.storage.rows import JsonObject
from engine.accounting import Part, TimeSplit
from engine.errors import GenerationError
from engine.events import ExpertHits, GenerationStats, Phase, Place
from engine.pace import Pace
from engine.params import GenerationParams, OverflowPolicy, SamplingParams

_LARGEST = 2**64


def params_to_json(params: GenerationParams) -> JsonObject:
    """`{"sampling": {"temperature": …}, "max_tokens": …}`."""
    return dataclasses.asdict(params) | {"stop": list(params.stop)}


def params_from_json(value: JsonObject) -> GenerationParams | None:
    """The parameters of a saved request; None if they are no longer legal (the JSON itself stays saved)."""
    try:
        sampling = SamplingParams(**_known(SamplingParams, value.get("sampling", {})))
        rest = _known(GenerationParams, value) | {
            "sampling": sampling,
            "stop": tuple(value.get("stop", ())),
            "overflow": OverflowPolicy(value.get("overflow", OverflowPolicy.STOP)),
        }
        return GenerationParams(**rest)
    except (GenerationError, TypeError, ValueError, AttributeError):
        return None


def stats_to_json(stats: GenerationStats) -> JsonObject:
    """The figures by name; `hits` are the counts [2 phases][layers][experts][4 places] as nested lists."""
    figures: dict[str, Any] = {}
    for field in dataclasses.fields(stats):
        value = getattr(stats, field.name)
        if isinstance(value, ExpertHits):
            value = value.counts.tolist()
        elif isinstance(value, TimeSplit | Pace):
            value = dataclasses.asdict(value)
        elif isinstance(value, float) and not math.isfinite(value):
            value = None  # JSON has no infinity
        figures[field.name] = value
    return figures


def stats_from_json(value: JsonObject, *, hits: bool = True) -> GenerationStats:
    """The figures of a saved answer; what it lacks, or has in another form, is at its default.

    Rows may be older than a figure, and an imported one may hold anything: a chat opens all the same. Without
    `hits` those are left out, which is ten times as fast: a long chat has thousands of answers.
    """
    figures: dict[str, Any] = {}
    for field in dataclasses.fields(GenerationStats):
        figure: Any = value.get(field.name)
        kind = str(field.type)
        if kind.startswith("float") and _is_number(figure):
            figures[field.name] = float(figure)
        elif kind.startswith("int") and _is_number(figure) and figure == int(figure):
            figures[field.name] = int(figure)
    figures["hits"] = _hits(value.get("hits") if hits else None)
    figures["time"] = _time_split(value.get("time"))
    figures["pace"] = _pace(value.get("pace"))
    return GenerationStats(**figures)


def _is_number(value: Any) -> bool:
    """Whether it is a number that a figure can be: a seed has 64 bits, nothing is larger."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -_LARGEST <= value <= _LARGEST  # also false for NaN


def _hits(value: object) -> ExpertHits:
    """The executions of experts; a place that came later has none."""
    try:
        counts = np.asarray(value if isinstance(value, list) else [], dtype=np.int64)
    except (ValueError, TypeError, OverflowError):
        return ExpertHits.zeros(0, 0)
    if counts.ndim != 4 or counts.shape[0] != len(Phase) or (counts < 0).any():
        return ExpertHits.zeros(0, 0)
    later = len(Place) - counts.shape[-1]
    return ExpertHits(np.pad(counts, ((0, 0),) * 3 + ((0, later),))) if later >= 0 else ExpertHits.zeros(0, 0)


def _time_split(value: object) -> TimeSplit:
    """Where the time went; nothing unless all of it can be read."""
    if not isinstance(value, Mapping) or not isinstance(value.get("parts"), Mapping):
        return TimeSplit()
    parts = {part: value["parts"].get(part, 0.0) for part in Part}
    numbers = (value.get("steps"), value.get("whole"), *parts.values())
    if not all(_is_number(number) and number >= 0 for number in numbers):
        return TimeSplit()
    return TimeSplit(int(value["steps"]), float(value["whole"]), {p: float(s) for p, s in parts.items()})


def _pace(value: object) -> Pace:
    """When the tokens came; nothing unless the times are in order."""
    if not isinstance(value, Mapping) or not isinstance(value.get("seconds"), list | tuple):
        return Pace()
    stride: Any = value.get("stride")
    seconds = list(value["seconds"])
    ordered = all(_is_number(each) and each >= 0 for each in seconds) and sorted(seconds) == seconds
    if not ordered or not _is_number(stride) or stride != int(stride) or stride < 1:
        return Pace()
    return Pace(int(stride), tuple(float(each) for each in seconds))


def _known(kind: type, value: JsonObject) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: item for name, item in value.items() if name in names}
