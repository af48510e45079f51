"""What of a search's text is told, and which beams a stop string ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.generation.beam_text import AgreedText, StopWatch, text_of
from engine.params import GenerationParams
from tests.engine.generation.scripted import LetterStream

tokens = st.lists(st.integers(1, 4), max_size=12)
stops = st.lists(st.text("abcd", min_size=1, max_size=3), max_size=3)


def cut(text: str, stops: list[str]) -> tuple[str, bool]:
    """The text up to the stop string that is complete first, the longer one of two that end together."""
    for end in range(len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            if text[:end].endswith(stop):
                return text[: end - len(stop)], True
    return text, False


@given(tokens, stops)
def test_a_whole_text_ends_before_the_first_stop_string(tokens: list[int], stops: list[str]) -> None:
    text = "".join(chr(96 + token) for token in tokens)
    assert text_of(tokens, LetterStream, stops) == cut(text, stops)


@given(tokens, stops, st.data())
def test_in_parts_it_is_the_same_text(tokens: list[int], stops: list[str], data: st.DataObject) -> None:
    agreed = AgreedText(LetterStream(), GenerationParams(stop=tuple(stops)))
    shown = ""
    while agreed.tokens < len(tokens) and not agreed.stopped:
        until = data.draw(st.integers(agreed.tokens + 1, len(tokens)))
        shown += agreed.extend(tokens[agreed.tokens : until])
        assert cut("".join(chr(96 + token) for token in tokens), stops)[0].startswith(shown)
    assert shown + agreed.end() == text_of(tokens, LetterStream, stops)[0]


@given(st.data(), stops, st.integers(1, 4))
def test_a_beam_ends_where_its_own_text_has_a_stop_string(
    data: st.DataObject, stops: list[str], beams: int
) -> None:
    watch = StopWatch(LetterStream, stops, beams)
    texts = [""] * beams
    for _ in range(data.draw(st.integers(1, 8))):
        parents = data.draw(st.lists(st.integers(0, beams - 1), min_size=beams, max_size=2 * beams))
        letters = data.draw(st.lists(st.integers(1, 4), min_size=len(parents), max_size=len(parents)))
        candidates = [
            texts[parent] + chr(96 + letter) for parent, letter in zip(parents, letters, strict=True)
        ]
        assert watch.ends(parents, letters) == [cut(text, stops)[1] for text in candidates]
        going_on = [place for place, text in enumerate(candidates) if not cut(text, stops)[1]]
        if not going_on:
            return
        chosen = data.draw(st.lists(st.sampled_from(going_on), min_size=beams, max_size=beams))
        watch.accept(chosen)
        texts = [candidates[place] for place in chosen]


def test_a_character_in_two_tokens_belongs_to_its_beam() -> None:
    watch = StopWatch(LetterStream, ["é"], 2)
    assert watch.ends([0, 1], [30, 1]) == [False, False]
    watch.accept([0, 1])
    assert watch.ends([0, 1, 1], [31, 31, 2]) == [True, True, False]


def test_what_repeats_itself_is_noticed_where_that_ends_answers() -> None:
    for stop_loops in (False, True):
        agreed = AgreedText(LetterStream(), GenerationParams(stop_loops=stop_loops))
        agreed.extend([1] * 63)
        assert not agreed.looped
        agreed.extend([1])
        assert agreed.looped == stop_loops
