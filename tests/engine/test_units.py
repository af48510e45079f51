from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.units import GIB, KIB, MIB, format_bytes, format_rate, format_seconds


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1536, "1.5 KiB"),
        (int(2.5 * MIB), "2.5 MiB"),
        (MIB - 1, "1.0 MiB"),
        (24 * GIB, "24.0 GiB"),
        (-3 * GIB, "-3.0 GiB"),
        (1000 * GIB, "1000.0 GiB"),
    ],
)
def test_bytes(amount: int, text: str) -> None:
    assert format_bytes(amount) == text


@given(st.integers(KIB, 2**50))
def test_text_is_within_its_rounding(amount: int) -> None:
    number, unit = format_bytes(amount).split()
    assert float(number) * {"KiB": KIB, "MiB": MIB, "GiB": GIB}[unit] == pytest.approx(amount, rel=0.055)


def test_rates_and_times() -> None:
    assert format_rate(55.34e9) == "55.3 GB/s"
    assert [format_seconds(time) for time in (85e-6, 3.1e-3, 1.25)] == ["85 µs", "3.10 ms", "1.2 s"]
