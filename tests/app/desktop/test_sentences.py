from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.desktop.sentences import Sentences, plain

ANSWER = """# Rome

It was founded in 753 BC. By whom, e.g. Romulus, is *not* known! See [the page](https://example.org).

- first **thing**
- second

```python
x = "a. b"
```

北京是首都。好吗？
Pi is 3.14 or so"""
SPOKEN = [
    "Rome",
    "It was founded in 753 BC.",
    "By whom, e.g. Romulus, is not known!",
    "See the page.",
    "first thing",
    "second",
    "Code in python.",
    "End of the code.",
    "北京是首都。",
    "好吗？",
    "Pi is 3.14 or so",
]


def read(pieces: list[str]) -> list[str]:
    sentences = Sentences()
    return [sentence for piece in pieces for sentence in sentences.feed(piece)] + sentences.finish()


def test_an_answer_is_read_by_sentences_without_its_signs() -> None:
    assert read([ANSWER]) == SPOKEN


@given(st.lists(st.integers(0, len(ANSWER))))
def test_it_does_not_matter_in_which_pieces_it_comes(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(ANSWER)]
    assert read([ANSWER[a:b] for a, b in pairwise(places)]) == SPOKEN


def test_a_sentence_is_told_when_it_ends_and_not_before() -> None:
    sentences = Sentences()
    assert sentences.feed("It is done") == []
    assert sentences.feed(".") == []  # 3.14 might come of it
    assert sentences.feed(" Now") == ["It is done."]


@given(st.text(), st.integers(1, 7))
def test_any_text_is_read_in_any_pieces_without_a_fault(text: str, size: int) -> None:
    for sentence in read([text[n : n + size] for n in range(0, len(text), size)]):
        assert sentence.strip()


def test_a_text_without_an_end_is_read_in_pieces() -> None:
    spoken = read(["word " * 500])
    assert all(len(sentence) <= 400 for sentence in spoken)
    assert " ".join(spoken) == " ".join(["word"] * 500)


@pytest.mark.parametrize(
    ("markdown", "spoken"),
    [
        ("| a | b |", "a b"),
        ("|---|---|", ""),
        ("> > said", "said"),
        ("- [x] done", "done"),
        ("2 * 3 * 4", "2 * 3 * 4"),
    ],
)
def test_signs_of_markdown_are_not_read(markdown: str, spoken: str) -> None:
    assert plain(markdown) == spoken
