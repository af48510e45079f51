"""Floors: bytes over bandwidths, worked out by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bench.rates import Rates
from engine.bench.roofline import decode_seconds, prefill_seconds

GPU = Rates(read=110e9, cpu=100e9, copy=50e9, cpu_together=80e9, copy_together=40e9, gpu=1000e9)
CPU = Rates(read=20e9, cpu=15e9)


def test_missing_experts_move_by_cpu_and_copies_at_once() -> None:
    assert GPU.together == 120e9
    assert GPU.cpu_share == pytest.approx(2 / 3)
    assert decode_seconds(GPU, missing=12e9, resident=1e9, dense=2e9) == pytest.approx(0.1 + 0.002)


def test_residents_count_where_nothing_is_missing() -> None:
    assert decode_seconds(GPU, missing=0, resident=5e9, dense=1e9) == pytest.approx(0.006)


def test_where_memory_is_the_shared_limit_the_cpu_alone_counts() -> None:
    shared = Rates(read=50e9, cpu=50e9, copy=20e9, cpu_together=25e9, copy_together=15e9, gpu=500e9)
    assert shared.together == 50e9


def test_without_a_gpu_everything_is_read_once() -> None:
    assert decode_seconds(CPU, missing=3e9, resident=0, dense=1e9) == pytest.approx(0.2)
    assert prefill_seconds(CPU, 4e9) == pytest.approx(0.2)
    assert prefill_seconds(GPU, 4e9) == pytest.approx(0.08)
    assert CPU.cpu_share == 1


_RATES = st.floats(1e6, 1e13)


@given(st.builds(Rates, _RATES, _RATES, *[st.none() | _RATES] * 4))
def test_rates_survive_a_file(rates: Rates) -> None:
    assert Rates.from_dict(json.loads(json.dumps(rates.to_dict()))) == rates


@pytest.mark.parametrize("wrong", [0, -1, "fast", float("inf"), None])
def test_rates_that_cannot_be_are_refused(wrong: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        Rates.from_dict(CPU.to_dict() | {"cpu_gbs": wrong})


def test_rates_in_words_name_what_was_measured() -> None:
    assert "GPU" not in CPU.text()
    assert "both at once at 120.0 (the CPU 67%)" in GPU.text()
