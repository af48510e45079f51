from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.selections import from_units, moved, units


@pytest.mark.parametrize(
    ("before", "word", "after"),
    [
        ("the tail", "tail", "the tail goes on"),
        ("a **bold word", "word", "a bold word"),
        ("1. one\n2. two", "two", "one\u2029two"),
        ("see $x$ and more", "more", "see \ufffc and more"),
        ("x" * 2000 + " **old** end", "end", "x" * 2000 + " old end"),
        (units("🙂🙂 **a** end"), "end", units("🙂🙂 a end")),
    ],
)
def test_a_selection_stays_on_its_words(before: str, word: str, after: str) -> None:
    start = before.rindex(word)
    new_start, new_end = moved(start, before, after), moved(start + len(word), before, after)
    assert after[new_start:new_end] == word


@given(before=st.text("ab*c ", max_size=30), after=st.text("ab*c ", max_size=30), data=st.data())
def test_places_stay_inside_and_in_order(before: str, after: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(before)))
    second = data.draw(st.integers(first, len(before)))
    new_first, new_second = moved(first, before, after), moved(second, before, after)
    assert 0 <= new_first <= new_second <= len(after)


def test_what_lies_before_the_text_is_not_moved() -> None:
    assert moved(-7, "abc", "xyz") == -7


@given(st.text())
def test_units_are_those_of_qt(text: str) -> None:
    assert len(units(text)) == len(text.encode("utf-16-le", "surrogatepass")) // 2
    assert from_units(units(text)) == text
