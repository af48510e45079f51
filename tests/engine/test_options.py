"""LoadOptions refuses values nothing can be loaded with, and says what to choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.errors import EngineError
from engine.options import LoadOptions
from engine.precision import PRECISIONS, precision_name, precision_text
from engine.status import EngineStatus
from kernels.formats import WeightFormat


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", "fastest"),
        ("device", "tpu"),
        ("vram_budget", -1),
        ("ram_reserve", -5),
        ("context_length", 0),
        ("threads", 0),
        ("precision", "int3"),
    ],
)
def test_a_bad_value_is_named_with_what_to_choose(name: str, value: Any) -> None:
    with pytest.raises(EngineError) as caught:
        replace(LoadOptions(), **{name: value})
    assert name in caught.value.what
    assert str(value) in caught.value.what
    assert caught.value.action


@pytest.mark.parametrize(
    ("asked", "model", "expected"),
    [(None, 32768, 4096), (None, 2048, 2048), (8192, 32768, 8192), (8192, 2048, 2048), (512, 2048, 512)],
)
def test_the_context_is_never_longer_than_the_model_was_made_for(
    asked: int | None, model: int, expected: int
) -> None:
    assert LoadOptions(context_length=asked).context_for(model) == expected


def test_status_counts_the_resident_experts() -> None:
    residency = np.zeros((3, 4), dtype=np.bool_)
    residency[1, 2:] = True
    status = EngineStatus(
        model_name="m",
        layers=3,
        experts=4,
        residency=residency,
        ram_used=1,
        vram_used=0,
        vram_budget=0,
        threads=2,
        isa="avx2",
        policy="paper",
        device="CPU",
        has_gpu=False,
        context_length=64,
    )
    assert status.resident_experts == 2


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
def test_every_precision_is_a_format_of_the_kernels_with_its_words(precision: str) -> None:
    weight_format = LoadOptions(precision=precision).expert_format
    assert weight_format == precision
    assert precision_name(weight_format) in precision_text(weight_format)


@pytest.mark.parametrize(
    ("precision", "asked", "matters"),
    [("bf16", True, False), ("int8", True, True), ("int4", True, True), ("int4", False, False)],
)
def test_forbidding_rounded_activations_matters_for_quantised_experts(
    precision: str, asked: bool, matters: bool
) -> None:
    assert LoadOptions(precision=precision, exact_activations=asked).exact_experts is matters


def test_nothing_is_quantised_unless_asked_for() -> None:
    assert LoadOptions().expert_format is WeightFormat.BF16
    assert tuple(WeightFormat) == PRECISIONS
