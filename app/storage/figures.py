"""Turn a request's parameters and an answer's figures into JSON objects and back.

The database and the JSON export both keep these objects, so a field added later is a key that old rows lack:
reading fills in the default.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from app.storage.rows import JsonObject
from engine.accounting import Part, TimeSplit
from engine.errors import GenerationError
from engine.events import ExpertHits, GenerationStats, Place
from engine.params import GenerationParams, SamplingParams


def params_to_json(params: GenerationParams) -> JsonObject:
    """`{"sampling": {"temperature": …}, "max_tokens": …}`."""
    return dataclasses.asdict(params) | {"stop": list(params.stop)}


def params_from_json(value: JsonObject) -> GenerationParams | None:
    """The parameters of a saved request; None if they are no longer legal (the JSON itself stays saved)."""
    try:
        sampling = SamplingParams(**_known(SamplingParams, value.get("sampling", {})))
        rest = _known(GenerationParams, value) | {"sampling": sampling, "stop": tuple(value.get("stop", ()))}
        return GenerationParams(**rest)
    except (GenerationError, TypeError, AttributeError):
        return None


def stats_to_json(stats: GenerationStats) -> JsonObject:
    """The figures by name; `hits` are the counts [2 phases][layers][experts][4 places] as nested lists."""
    figures: dict[str, Any] = {}
    for field in dataclasses.fields(stats):
        value = getattr(stats, field.name)
        if isinstance(value, ExpertHits):
            value = value.counts.tolist()
        elif isinstance(value, TimeSplit):
            value = dataclasses.asdict(value)
        elif isinstance(value, float) and not math.isfinite(value):
            value = None  # JSON has no infinity
        figures[field.name] = value
    return figures


def stats_from_json(value: JsonObject) -> GenerationStats:
    """The figures of a saved answer; what it lacks is at its default, 0: also a place that came later."""
    figures = {name: figure for name, figure in _known(GenerationStats, value).items() if figure is not None}
    counts = np.asarray(figures.pop("hits", []), dtype=np.int64)
    if counts.ndim == 4:
        later = len(Place) - counts.shape[-1]
        figures["hits"] = ExpertHits(np.pad(counts, ((0, 0),) * 3 + ((0, max(0, later)),)))
    if "time" in figures:
        figures["time"] = _time_split(figures["time"])
    return GenerationStats(**figures)


def _time_split(value: JsonObject) -> TimeSplit:
    parts = {part: float(value["parts"].get(part, 0.0)) for part in Part}
    return TimeSplit(int(value["steps"]), float(value["whole"]), parts)


def _known(kind: type, value: JsonObject) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: item for name, item in value.items() if name in names}
