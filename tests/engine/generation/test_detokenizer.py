"""Streamed text equals decoding at once, whatever the tokens, and never contains half a character."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor
from transformers import PreTrainedTokenizerFast

from engine.generation.detokenizer import REPLACEMENT, ByteFallbackStream, SentencePieceStream
from engine.generation.tokenizer import Tokenizer
from tests.engine.generation.tokenizer_folders import (
    byte_level_folder,
    mistral_json_folder,
    mistral_model_file,
)

Decode = Callable[[Sequence[int]], str]
KINDS = ["byte-level", "mistral tokenizer.json", "mistral tokenizer.model"]
hard_text = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from("aé e\u0301 世界こ한🙂👩‍👩‍👧‍👦🇫🇷\u200d\ufe0f\n\t  ▁Ġ"),
    ),
    max_size=40,
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Tokenizer, Decode]]:
    """Each kind of tokenizer with an independent library's decode."""
    folder = tmp_path_factory.mktemp("tokenizers")
    small = byte_level_folder(folder / "small")
    model_file = mistral_model_file(folder / "bare")
    full = mistral_json_folder(folder / "json", model_file)
    processor = SentencePieceProcessor(model_file=str(model_file))
    textless = {processor.unk_id(), processor.bos_id(), processor.eos_id()}

    def transformers_decode(path: Path) -> Decode:
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"))
        return lambda ids: tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    return {
        "byte-level": (Tokenizer.load(small), transformers_decode(small)),
        "mistral tokenizer.json": (Tokenizer.load(full), transformers_decode(full)),
        "mistral tokenizer.model": (
            Tokenizer.load(folder / "bare"),
            lambda ids: processor.decode([token for token in ids if token not in textless]),
        ),
    }


def streamed(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    stream = tokenizer.stream()
    return [*(stream.push(token) for token in ids), stream.flush()]


anything = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("kind", KINDS)
@anything
@given(text=hard_text)
def test_a_text_comes_back_whole_and_in_whole_characters(
    loaded: dict[str, tuple[Tokenizer, Decode]], kind: str, text: str
) -> None:
    tokenizer, decode = loaded[kind]
    ids = tokenizer.encode(text)
    parts = streamed(tokenizer, ids)
    assert "".join(parts) == decode(ids) == tokenizer.decode(ids)
    if kind == "byte-level":
        assert "".join(parts) == text
    assert REPLACEMENT in text or not any(REPLACEMENT in part for part in parts)


@pytest.mark.parametrize("kind", KINDS)
@anything
@given(data=st.data())
def test_any_tokens_stream_to_what_they_decode_to(
    loaded: dict[str, tuple[Tokenizer, Decode]], kind: str, data: st.DataObject
) -> None:
    tokenizer, decode = loaded[kind]
    byte_tokens = st.integers(3, 258)  # every tokenizer here has its byte pieces near these ids
    ids = data.draw(st.lists(st.one_of(st.integers(0, tokenizer.size - 1), byte_tokens), max_size=40))
    assert "".join(streamed(tokenizer, ids)) == decode(ids) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
@anything
@given(
    raw=st.binary(max_size=12),
    before=st.sampled_from(["", "a", " b"]),
    after=st.sampled_from(["", "z", " é"]),
)
def test_invalid_bytes_stream_to_what_they_decode_to(
    loaded: dict[str, tuple[Tokenizer, Decode]], kind: str, raw: bytes, before: str, after: str
) -> None:
    tokenizer, decode = loaded[kind]
    first_byte = (
        3  # Mistral: <0x00> … <0xFF> are 3 … 258; byte-level: the trainer sorts its alphabet likewise
    )
    ids = [*tokenizer.encode(before), *(first_byte + byte for byte in raw), *tokenizer.encode(after)]
    assert "".join(streamed(tokenizer, ids)) == decode(ids)


def test_an_emoji_appears_with_its_last_byte_and_not_before(
    loaded: dict[str, tuple[Tokenizer, Decode]],
) -> None:
    tokenizer, _ = loaded["byte-level"]
    ids = tokenizer.encode("🦊")
    assert len(ids) == 3
    assert streamed(tokenizer, ids) == ["", "", "🦊", ""]


def test_byte_runs_end_as_each_library_ends_them() -> None:
    pieces = ["<0xF0>", "<0x9F>", "<0xE2>", "<0x82>", "<0xAC>", "▁x"]
    fallback, sentencepiece = ByteFallbackStream(), SentencePieceStream()
    assert "".join(map(fallback.push, pieces)) + fallback.flush() == REPLACEMENT * 5 + " x"
    assert "".join(map(sentencepiece.push, pieces)) + sentencepiece.flush() == REPLACEMENT * 2 + "€ x"


@pytest.mark.parametrize("kind", KINDS)
def test_a_continued_text_keeps_its_first_space(
    loaded: dict[str, tuple[Tokenizer, Decode]], kind: str
) -> None:
    tokenizer, _ = loaded[kind]
    whole = tokenizer.encode("The capital is Paris")
    start = tokenizer.encode("The capital is")
    assert whole[: len(start)] == start
    stream = tokenizer.stream(after_text=True)
    assert "".join(map(stream.push, whole[len(start) :])) + stream.flush() == " Paris"


@pytest.mark.parametrize("kind", KINDS)
@anything
@given(text=hard_text.filter(lambda text: REPLACEMENT not in text))
def test_nothing_is_held_back_but_bytes_that_are_not_yet_text(
    loaded: dict[str, tuple[Tokenizer, Decode]], kind: str, text: str
) -> None:
    tokenizer, decode = loaded[kind]
    ids = tokenizer.encode(text)
    stream = tokenizer.stream()
    shown = ""
    for count, token in enumerate(ids, start=1):
        shown += stream.push(token)
        so_far = decode(ids[:count])
        is_byte = 3 <= token < 259 and kind == "mistral tokenizer.json"  # a run shows when it has ended
        assert so_far.startswith(shown) if is_byte else so_far.rstrip(REPLACEMENT) == shown
