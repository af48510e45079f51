"""Bandwidths without a GPU; those with one are measured in test_on_gpu."""

from __future__ import annotations

import pytest

from engine.bench.model_rates import held_memory, measure_rates
from engine.errors import Cancelled
from engine.progress import CancelToken
from tests.engine.bench.subjects import mixed, tiny


def test_without_a_gpu_only_the_cpu_is_measured() -> None:
    with mixed(tiny(), resident=0) as subject:
        rates = measure_rates(subject.parts, CancelToken(), None, seconds=0.01)
    assert min(rates.read, rates.cpu) > 1e6
    assert rates.copy is rates.gpu is rates.copy_together is None


def test_only_memory_that_is_held_is_read() -> None:
    with mixed(tiny(), resident=0) as subject:
        bank = subject.parts.bank
        whole = held_memory(bank)
        assert len(whole) == len(bank.arena)
        bank.drop(0, 2)
        bank.drop(1, 7)
        part = held_memory(bank)  # 3 … 14, of 24 experts: the longest run
        assert part.data_ptr() == bank.block(0, 3).data_ptr()
        assert len(part) == len(bank.arena) // 24 * 12
        assert measure_rates(subject.parts, CancelToken(), None, seconds=0.01).cpu > 0


def test_a_machine_whose_experts_are_all_on_the_gpu_is_measured_too() -> None:
    with mixed(tiny(), resident=0) as subject:
        for layer in range(3):
            for expert in range(8):
                subject.parts.bank.drop(layer, expert)
        rates = measure_rates(subject.parts, CancelToken(), None, seconds=0.01)
        assert rates.read == rates.cpu > 1e6


def test_measuring_can_be_cancelled() -> None:
    cancel = CancelToken()
    cancel.cancel()
    with mixed(tiny(), resident=0) as subject, pytest.raises(Cancelled):
        measure_rates(subject.parts, cancel, None)
