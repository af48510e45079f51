"""Impossible requests are refused when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import GenerationError
from engine.params import GenerationParams


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"beams": 0}, "beams cannot be 0"),
        ({"beams": 17}, "from 1 to 16"),
        ({"answers": 2}, "the number of beams, 1"),
        ({"beams": 4, "answers": 5}, "the number of beams, 4"),
        ({"beams": 4, "answers": 0}, "answers cannot be 0"),
        ({"length_penalty": float("nan")}, "length_penalty cannot be nan"),
        ({"length_penalty": 5.1}, "from -5.0 to 5.0"),
        ({"max_tokens": 0}, "max_tokens cannot be 0"),
        ({"stop": ("",)}, "cannot be empty"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(GenerationError, match=message):
        GenerationParams(**wrong)


def test_the_limits_themselves_are_allowed() -> None:
    GenerationParams(beams=16, answers=16, length_penalty=-5.0, max_tokens=1)
