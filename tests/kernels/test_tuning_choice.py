"""The choice among measured times, against a search of its own: brute force over every monotone sequence."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.tuning import FormatTuning, Way
from kernels.tuning_choice import EIGHT_BIT_SHARE, choose_panel_tokens, choose_ways, eight_bit_speedup

COUNTS = (1, 2, 4, 8, 16, 32, 64)
STAND, EIGHT, EXPANDED = Way.AS_THEY_STAND, Way.EIGHT_BIT, Way.EXPANDED
Table = dict[Way, dict[int, float]]

seconds = st.floats(1e-5, 1e-1)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Any times; weights as they stand up to some count or not at all, 8 bits for all counts or none."""
    counts = COUNTS[: draw(st.integers(1, len(COUNTS)))]

    def times(counts: tuple[int, ...]) -> dict[int, float]:
        return {count: draw(seconds) for count in counts}

    table = {EXPANDED: times(counts)}
    if stand := counts[: draw(st.integers(0, len(counts)))]:
        table[STAND] = times(stand)
    if draw(st.booleans()):
        table[EIGHT] = times(counts)
    return table


def product(table: Table, ways: list[Way]) -> float:
    """The product of the times, each with activations of 8 bits as if it took 1/0.9 of it."""
    factors = [
        table[way][count] / (EIGHT_BIT_SHARE if way is EIGHT else 1)
        for way, count in zip(ways, sorted(table[EXPANDED]), strict=True)
    ]
    return math.prod(factors)


def possible(table: Table) -> list[list[Way]]:
    """Every sequence in the ways' order whose times are known."""
    counts = sorted(table[EXPANDED])
    return [
        list(ways)
        for ways in combinations_with_replacement((STAND, EIGHT, EXPANDED), len(counts))
        if all(count in table.get(way, {}) for way, count in zip(ways, counts, strict=True))
    ]


def chosen(table: Table) -> list[Way]:
    tuning = choose_ways(table)
    return [tuning.way(count) for count in sorted(table[EXPANDED])]


@given(tables())
def test_the_choice_is_the_fastest_sequence(table: Table) -> None:
    ways = chosen(table)
    assert ways in possible(table)
    assert product(table, ways) <= min(product(table, each) for each in possible(table)) * (1 + 1e-9)


@given(tables())
def test_rounding_is_a_tenth_faster_over_its_range_and_at_its_ends(table: Table) -> None:
    ways, counts = chosen(table), sorted(table[EXPANDED])
    rounded = [n for way, n in zip(ways, counts, strict=True) if way is EIGHT]
    if not rounded:
        return
    slack = 1 + 1e-9
    assert table[EIGHT][rounded[-1]] <= EIGHT_BIT_SHARE * table[EXPANDED][rounded[-1]] * slack
    if rounded[0] in table.get(STAND, {}):
        assert table[EIGHT][rounded[0]] <= EIGHT_BIT_SHARE * table[STAND][rounded[0]] * slack
    mean = math.prod(table[EIGHT][n] / table[EXPANDED][n] for n in rounded) ** (1 / len(rounded))
    assert mean <= EIGHT_BIT_SHARE * slack
    assert eight_bit_speedup(table, choose_ways(table)) >= 1 / EIGHT_BIT_SHARE / slack


@given(tables())
def test_without_rounding_nothing_is_rounded(table: Table) -> None:
    table.pop(EIGHT, None)
    tuning = choose_ways(table)
    assert not tuning.eight_bit
    assert eight_bit_speedup(table, tuning) == 1


@given(st.lists(seconds, min_size=7, max_size=7))
def test_of_equal_ways_the_simpler_is_taken(times: list[float]) -> None:
    same = dict(zip(COUNTS, times, strict=True))
    few = {count: same[count] for count in (1, 2, 4)}
    assert choose_ways({EXPANDED: same, STAND: few}) == FormatTuning(4)
    rounded = {count: EIGHT_BIT_SHARE * seconds for count, seconds in same.items()}
    faster = {count: seconds * 0.999 for count, seconds in rounded.items()}
    assert not choose_ways({EXPANDED: same, EIGHT: {n: s * 1.0001 for n, s in rounded.items()}}).eight_bit
    assert choose_ways({EXPANDED: same, EIGHT: faster}) == FormatTuning(0, many_eight_bit=True)


# One core of a Zen 4 server, an int4 expert of 4096 × 14336.
ZEN4: Table = {
    STAND: {1: 7.3, 2: 10.5, 4: 18.0},
    EIGHT: {1: 5.9, 2: 6.1, 4: 6.7, 64: 77.0},
    EXPANDED: {1: 29.0, 2: 30.0, 4: 32.0, 64: 115.0},
}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (ZEN4, FormatTuning(0, many_eight_bit=True)),
        # One token waits for the memory in both ways; tiles win from 32 tokens on.
        (
            {
                STAND: {1: 1.0, 2: 1.2, 4: 2.0},
                EIGHT: {1: 0.97, 2: 1.0, 4: 1.1, 16: 2.0, 32: 4.0},
                EXPANDED: {1: 2.0, 2: 2.0, 4: 2.1, 16: 2.5, 32: 2.8},
            },
            FormatTuning(16, few_eight_bit=True, exact_tokens=1),
        ),
        (
            {
                STAND: {1: 2.0, 2: 2.4, 4: 4.0},
                EIGHT: {1: 1.0, 2: 1.0, 4: 1.1, 16: 3.0},
                EXPANDED: {1: 2.5, 2: 2.5, 4: 2.5, 16: 2.5},
            },
            FormatTuning(4, few_eight_bit=True),
        ),
        ({STAND: {1: 1.0, 2: 3.0}, EXPANDED: {1: 2.0, 2: 2.0}}, FormatTuning(1)),
        ({STAND: {1: 3.0, 2: 3.0}, EXPANDED: {1: 2.0, 2: 2.0}}, FormatTuning(0)),
        ({EXPANDED: {1: 2.0, 2: 2.0}}, FormatTuning(0)),
        # One count out of line does not divide a range: all counts decide together.
        (
            {STAND: {1: 1.0, 2: 2.1, 4: 1.0, 8: 9.0}, EXPANDED: {1: 2.0, 2: 2.0, 4: 2.0, 8: 2.0}},
            FormatTuning(4),
        ),
    ],
)
def test_known_machines(table: Table, expected: FormatTuning) -> None:
    assert choose_ways(table) == expected


def test_the_speedup_is_against_the_best_without_rounding() -> None:
    table: Table = {STAND: {1: 2.0}, EIGHT: {1: 1.0, 8: 2.0}, EXPANDED: {1: 9.0, 8: 4.5}}
    tuning = choose_ways(table)
    assert tuning.many_eight_bit
    assert eight_bit_speedup(table, tuning) == pytest.approx((2.0 * 2.25) ** 0.5)


@given(st.lists(st.tuples(seconds, seconds), min_size=1, max_size=5))
def test_the_division_is_the_fastest_prefix(times: list[tuple[float, float]]) -> None:
    counts = [4 * 2**place for place in range(len(times))]
    panels, rows = ({n: pair[of] for n, pair in zip(counts, times, strict=True)} for of in (0, 1))
    limit = choose_panel_tokens(panels, rows)
    assert limit in [3, *counts]

    def total(limit: int) -> float:
        return math.prod(panels[n] if n <= limit else rows[n] for n in counts)

    assert total(limit) <= min(total(each) for each in [3, *counts]) * (1 + 1e-9)


def test_of_equal_divisions_panels_are_taken() -> None:
    same = {4: 1.0, 8: 2.0, 16: 3.0}
    assert choose_panel_tokens(same, dict(same)) == 16
    assert choose_panel_tokens(same, {4: 0.9, 8: 1.8, 16: 2.7}) == 3
    assert choose_panel_tokens(same, {4: 1.1, 8: 2.2, 16: 2.7}) == 8
