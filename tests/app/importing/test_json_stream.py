import json
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.importing.errors import UnreadableError
from app.importing.json_stream import values_in

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def blocks_of(text: str, length: int) -> list[str]:
    return [text[place : place + length] for place in range(0, len(text), length)]


@given(JSON, st.sampled_from([None, 1, 3]), st.integers(1, 30), st.booleans())
def test_an_array_gives_its_elements_and_anything_else_itself(
    value: object, indent: int | None, length: int, ascii_only: bool
) -> None:
    text = f" \n{json.dumps(value, indent=indent, ensure_ascii=ascii_only)}\r\n"
    expected = value if isinstance(value, list) else [value]
    assert list(values_in(blocks_of(text, length))) == expected


@given(JSON, st.integers(1, 30), st.integers(0, 1000))
def test_a_text_that_was_cut_off_is_damaged(value: object, length: int, cut: int) -> None:
    text = json.dumps([value])
    with pytest.raises(UnreadableError):
        list(values_in(blocks_of(text[: cut % len(text)], length)))


def test_no_more_is_read_than_is_asked_for() -> None:
    read = 0

    def blocks() -> Iterator[str]:
        nonlocal read
        yield "["
        for number in range(1000):
            read += 1
            yield f'{{"chat": {number}}},\n'
        yield "7]"

    values = values_in(blocks())
    assert [next(values) for _ in range(10)] == [{"chat": number} for number in range(10)]
    assert read < 15
    assert sum(1 for _ in values) == 991


def test_spaces_are_not_kept() -> None:
    block = " " * 2**16
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match="empty"):
            list(values_in(block for _ in range(500)))
        assert tracemalloc.get_traced_memory()[1] < 10 * len(block)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("hello", "damaged"),
        ("<html>", "damaged"),
        ("[1, 2", "damaged"),
        ("[1 2]", "damaged"),
        ("[1,]", "damaged"),
        ('{"a": 1', "damaged"),
        ("[1,\n 2,\n x]", "line 3"),
        ("[1] 2", "something follows"),
        ("{} {}", "something follows"),
        ("[NaN]", "number"),
        ("[-Infinity]", "number"),
        ("9" * 5000, "number"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_damage_is_named(text: str, words: str) -> None:
    with pytest.raises(UnreadableError, match=words):
        list(values_in([text]))
    with pytest.raises(UnreadableError, match=words):
        list(values_in(blocks_of(text, 7)))


def test_a_part_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '["short", "' + "x" * 300 + '"]'
    assert len(list(values_in(blocks_of(text, 10)))) == 2
    monkeypatch.setattr("app.importing.json_stream._MOST_CHARACTERS", 100)
    taken: list[str] = []

    def blocks() -> Iterator[str]:
        for block in blocks_of(text, 10):
            taken.append(block)
            yield block

    with pytest.raises(UnreadableError, match="too long"):
        list(values_in(blocks()))
    assert sum(map(len, taken)) < 250
    many = json.dumps(["x" * 50] * 100)
    assert len(list(values_in(blocks_of(many, 10)))) == 100  # of parts there may be any number
