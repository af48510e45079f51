"""Rotary embeddings against complex multiplication in float64."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models.rope import RotaryTable


@given(
    half=st.integers(1, 8),
    theta=st.floats(10, 1e6),
    start=st.integers(0, 3000),
    tokens=st.integers(1, 5),
)
@settings(max_examples=50, deadline=None)
def test_rotation_is_complex_multiplication(half, theta, start, tokens):
    table = RotaryTable(2 * half, theta, torch.device("cpu"))
    heads = torch.randn(tokens, 3, 2 * half)
    before = torch.complex(*heads.double().split(half, dim=-1))
    table.rotate_(heads, *table.rows(start, tokens))
    exponents = torch.arange(half, dtype=torch.float64) / half
    angles = torch.arange(start, start + tokens, dtype=torch.float64)[:, None] / theta**exponents
    turned = before * torch.polar(torch.ones_like(angles), angles)[:, None]
    # An angle of 3000 in float32 is known to 1e-4; so is its sine.
    torch.testing.assert_close(heads.double(), torch.cat((turned.real, turned.imag), -1), atol=2e-3, rtol=0)


def test_the_table_grows_without_changing():
    table = RotaryTable(8, 1e4, torch.device("cpu"))
    early = [rows.clone() for rows in table.rows(1000, 20)]
    table.rows(50_000, 1)
    for before, after in zip(early, table.rows(1000, 20), strict=True):
        assert torch.equal(before, after)


def test_positions_are_exact_far_out():
    """Rows of a large table equal those of transformers' formula for the same position."""
    table = RotaryTable(16, 1e6, torch.device("cpu"))
    cos, sin = table.rows(100_000, 1)
    frequencies = 1.0 / (1e6 ** (torch.arange(0, 16, 2, dtype=torch.float) / 16))
    angles = torch.tensor(100_000.0) * frequencies
    torch.testing.assert_close(cos[0, 0], torch.cat((angles.cos(), angles.cos())), atol=1e-5, rtol=0)
    torch.testing.assert_close(sin[0, 0], torch.cat((-angles.sin(), angles.sin())), atol=1e-5, rtol=0)
