import json

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


@given(JSON, st.sampled_from([None, 1, 3]))
def test_an_array_gives_its_elements_and_anything_else_itself(value: object, indent: int | None) -> None:
    expected = value if isinstance(value, list) else [value]
    assert list(values_in(f" \n{json.dumps(value, indent=indent)}\r\n")) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged in line 1"),
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
        list(values_in(text))
