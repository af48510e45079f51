"""What was chosen: into files and back, onto a pool, and in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kernel_choice import KernelChoice, apply_kernels
from kernels.cpu import CpuPool
from kernels.formats import WeightFormat
from kernels.isa import Isa
from kernels.tuning import FormatTuning, Tuning, Way

INT4 = WeightFormat.INT4
SECONDS = {Way.EXPANDED: {1: 3e-3, 8: 4e-3}, Way.EIGHT_BIT: {1: 1e-3, 8: 2e-3}}
BEFORE = Tuning({each: FormatTuning(4) for each in WeightFormat}, 12)


def choice(tuning: FormatTuning, isa: Isa = Isa.AVX2, format: WeightFormat = INT4) -> KernelChoice:
    return KernelChoice(isa, format, tuning, panel_tokens=8, speedup=1.94, seconds=SECONDS)


counts = st.integers(0, 100)
tunings = st.builds(FormatTuning, counts, st.booleans(), st.booleans(), counts)
times = st.dictionaries(st.integers(1, 300), st.floats(1e-6, 10), min_size=1)
choices = st.builds(
    KernelChoice,
    st.sampled_from(Isa),
    st.sampled_from(WeightFormat),
    tunings,
    counts,
    st.floats(1, 5),
    st.dictionaries(st.sampled_from(Way), times),
)


@given(choices)
def test_a_choice_comes_back_from_json(kernels: KernelChoice) -> None:
    assert KernelChoice.from_dict(json.loads(json.dumps(kernels.to_dict()))) == kernels


@pytest.mark.parametrize(
    "change",
    [
        {"isa": "mmx"},
        {"format": "int3"},
        {"few_tokens": -1},
        {"few_tokens": 2**70},
        {"few_tokens": 1.5},
        {"exact_tokens": True},
        {"few_eight_bit": 1},
        {"panel_tokens": None},
        {"speedup": 0},
        {"speedup": float("nan")},
        {"seconds": []},
        {"seconds": {"magic": {}}},
        {"seconds": {"eight_bit": {"1": -1}}},
    ],
)
def test_other_data_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        KernelChoice.from_dict(choice(FormatTuning(4)).to_dict() | change)


@pytest.mark.parametrize(
    ("tuning", "isa", "expected"),
    [
        (
            FormatTuning(0, many_eight_bit=True),
            Isa.AVX2,
            "8-bit activations for any number of tokens (1.9 × faster).",
        ),
        (
            FormatTuning(16, few_eight_bit=True),
            Isa.AMX,
            "8-bit activations for 1–16 tokens (1.9 × faster), tiles above.",
        ),
        (
            FormatTuning(16, few_eight_bit=True, exact_tokens=1),
            Isa.AVX512,
            "weights as they are for 1 token, 8-bit activations for 2–16 (1.9 × faster), "
            "weights expanded to bf16 above.",
        ),
        (FormatTuning(4), Isa.AMX, "weights as they are for 1–4 tokens, tiles above."),
        (FormatTuning(0), Isa.AVX2, "weights expanded to bf16 for any number of tokens."),
        (
            FormatTuning(2, many_eight_bit=True),
            Isa.AVX2,
            "weights as they are for 1–2 tokens, 8-bit activations above (1.9 × faster).",
        ),
        (
            FormatTuning(4, few_eight_bit=True, many_eight_bit=True),
            Isa.AVX2,
            "8-bit activations for any number of tokens (1.9 × faster).",
        ),
    ],
)
def test_it_is_told_in_words(tuning: FormatTuning, isa: Isa, expected: str) -> None:
    assert choice(tuning, isa).text() == f"Kernels: {expected}"


def test_bf16_in_words() -> None:
    tiles = choice(FormatTuning(8), Isa.AMX, WeightFormat.BF16)
    assert tiles.text() == "Kernels: vectors for 1–8 tokens, tiles above."
    only = KernelChoice(Isa.AVX2, WeightFormat.BF16, FormatTuning(6), 8)
    assert only.text() == "Kernels: the same for any number of tokens."


@given(choices, st.sampled_from(Isa), st.booleans())
def test_it_applies_to_its_level_and_format_only(kernels: KernelChoice, isa: Isa, exact: bool) -> None:
    after = kernels.applied(BEFORE, isa, exact=exact)
    if isa is not kernels.isa or (exact and kernels.tuning.eight_bit):
        assert after == BEFORE
        return
    assert after.panel_tokens == kernels.panel_tokens
    assert after.formats == {**BEFORE.formats, kernels.format: kernels.tuning}


def test_a_pool_is_given_it() -> None:
    with CpuPool(1) as pool:
        before = pool.tuning
        apply_kernels(None, pool, exact=False)
        assert pool.tuning == before
        apply_kernels(choice(FormatTuning(0, many_eight_bit=True), pool.isa), pool, exact=True)
        assert pool.tuning == before
        apply_kernels(choice(FormatTuning(0, many_eight_bit=True), pool.isa), pool, exact=False)
        assert pool.tuning.formats[INT4].many_eight_bit
        assert pool.tuning.panel_tokens == 8
