from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.chat.column import FIRST, FIRST_CHARACTERS, first_rows

SHORT, LONG = 10, FIRST_CHARACTERS


def test_short_messages_are_laid_out_by_their_number() -> None:
    assert first_rows([SHORT] * 100, 99) == range(100 - FIRST, 100)
    assert first_rows([SHORT] * 100, 50) == range(45, 55)
    assert first_rows([SHORT] * 100, 0) == range(FIRST)
    assert first_rows([SHORT] * 3, 2) == range(3)
    assert first_rows([], -1) == range(0)


def test_of_long_messages_only_those_that_can_be_seen() -> None:
    assert first_rows([LONG] * 100, 99) == range(98, 100)
    assert first_rows([LONG] * 100, 50) == range(49, 51)
    assert first_rows([LONG], 0) == range(1)


@given(st.lists(st.integers(0, 20_000), max_size=40), st.data())
def test_the_place_itself_is_always_laid_out(lengths: list[int], data: st.DataObject) -> None:
    if lengths:
        place = data.draw(st.integers(0, len(lengths) - 1))
        rows = first_rows(lengths, place)
        assert place in rows
        assert min(2, len(lengths)) <= len(rows) <= FIRST
        assert 0 <= rows.start <= rows.stop <= len(lengths)
