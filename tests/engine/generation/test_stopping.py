"""Stop strings are found wherever token borders fall; loops are recognised by the documented rule alone."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.generation.stopping import LOOP_COPIES, LOOP_PERIOD, LOOP_TOKENS, LoopDetector, StopStrings

few_letters = st.text(alphabet="abX", min_size=0, max_size=40)
stop_lists = st.lists(st.text(alphabet="abX", min_size=1, max_size=5), max_size=4)


def naive(text: str, stops: list[str]) -> tuple[str, bool]:
    """Grow the text letter by letter; it ends when it ends with a stop string, the longest one."""
    for end in range(len(text) + 1):
        matching = [stop for stop in stops if text[:end].endswith(stop)]
        if matching:
            return text[: end - max(map(len, matching))], True
    return text, False


def cut(text: str, borders: list[int]) -> list[str]:
    places = [0, *sorted(border % (len(text) + 1) for border in borders), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places)]


@settings(max_examples=400)
@given(few_letters, stop_lists, st.lists(st.integers(0, 1000), max_size=12))
def test_the_answer_ends_at_the_first_complete_stop_string(
    text: str, stops: list[str], borders: list[int]
) -> None:
    matcher = StopStrings(stops)
    shown, stopped = "", False
    for part in cut(text, borders):
        more, stopped = matcher.push(part)
        shown += more
        if stopped:
            break
    if not stopped:
        shown += matcher.flush()
    assert (shown, stopped) == naive(text, stops)


@settings(max_examples=400)
@given(few_letters, stop_lists)
def test_text_is_held_back_only_while_it_could_become_a_stop_string(text: str, stops: list[str]) -> None:
    matcher = StopStrings(stops)
    shown = ""
    for place, letter in enumerate(text, start=1):
        more, stopped = matcher.push(letter)
        shown += more
        if stopped:
            return
        held = text[len(shown) : place]
        assert shown + held == text[:place]
        assert not held or any(stop.startswith(held) for stop in stops)


def fires_at(tokens: list[int]) -> int | None:
    detector = LoopDetector()
    for place, token in enumerate(tokens):
        if detector.push(token):
            return place
    return None


def naive_loop(tokens: list[int]) -> bool:
    for period in range(1, LOOP_PERIOD + 1):
        length = max(LOOP_COPIES * period, LOOP_TOKENS)
        tail = tokens[-length:]
        if len(tail) == length and all(a == b for a, b in zip(tail, tail[period:], strict=False)):
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 5), max_size=60),
    st.lists(st.integers(0, 5), min_size=1, max_size=70),
    st.integers(1, 90),
    st.lists(st.integers(0, 5), max_size=10),
)
def test_the_loop_rule_is_the_documented_one(
    before: list[int], block: list[int], copies: int, after: list[int]
) -> None:
    tokens = (before + block * copies)[:400] + after
    first = next((place for place in range(len(tokens)) if naive_loop(tokens[: place + 1])), None)
    assert fires_at(tokens) == first


@given(st.integers(1, LOOP_PERIOD), st.integers(0, 10_000))
def test_a_repeated_block_is_stopped_once_it_stands_four_times(period: int, start: int) -> None:
    block = list(range(start, start + period))
    place = fires_at(block * LOOP_TOKENS)
    assert place == max(LOOP_COPIES * period, LOOP_TOKENS) - 1


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1.2, 2))
def test_words_as_frequent_as_in_natural_text_are_never_a_loop(seed: int, exponent: float) -> None:
    words = np.random.default_rng(seed).zipf(exponent, size=2000)  # the exponent of real texts is near 1
    assert fires_at(words.tolist()) is None


def test_real_prose_code_tables_and_lists_are_not_loops() -> None:
    root = Path(__file__).parents[3]
    texts = [
        (root / "LICENSE").read_text(encoding="utf-8"),
        *((root / "engine" / name).read_text(encoding="utf-8") for name in ("params.py", "events.py")),
        "| a | b | c | d | e | f |\n|" + "---|" * 12 + "\n" + "| 1 | 0 | 0 | 0 | 0 | 2 |\n" * 2,
        "la " * 20 + "hey jude",
        "x = [" + "0, " * 30 + "1]",
        "Row, row, row your boat\nGently down the stream\n" * 3,
    ]
    for text in texts:
        words = re.findall(r"\w+|\W", text)
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        assert fires_at([numbers[word] for word in words if word != " "]) is None, text[:80]
