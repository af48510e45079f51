"""Presets as a file: what is written is read back, and what cannot be used is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.presets.errors import PresetFileError
from app.presets.format import (
    MOST_BYTES,
    clean_name,
    from_bytes,
    setup_from_json,
    setup_to_json,
    to_text,
)
from app.presets.parameters import Parameters
from app.presets.preset import ChatSetup, Preset
from engine.params import OverflowPolicy
from engine.text import clean_text

DOCS = Path(__file__).parents[3] / "docs" / "presets-format.md"
NOTHING = st.none()
PARAMETERS = st.builds(
    Parameters,
    temperature=NOTHING | st.floats(0, 10),
    top_k=NOTHING | st.integers(0, 1_000_000),
    top_p=NOTHING | st.floats(0.01, 1),
    min_p=NOTHING | st.floats(0, 0.99),
    repetition_penalty=NOTHING | st.floats(0.01, 10),
    seed=NOTHING | st.integers(0, 2**63 - 1),
    max_tokens=NOTHING | st.integers(1, 1_000_000),
    beams=st.integers(1, 16),
    answers=st.integers(1, 16),
    overflow=st.sampled_from(OverflowPolicy),
)
PROMPTS = st.text(max_size=200).map(clean_text)
PRESETS = st.builds(
    Preset, st.uuids().map(str), st.text(min_size=1).map(clean_name).filter(bool), PROMPTS, PARAMETERS
)


@given(st.lists(PRESETS, max_size=6, unique_by=lambda preset: preset.id))
def test_what_is_written_is_read_back(presets: list[Preset]) -> None:
    text = to_text(presets)
    assert from_bytes(text.encode(), "x.json") == presets
    assert to_text(from_bytes(text.encode(), "x.json")) == text


@given(PARAMETERS, PROMPTS, st.text(max_size=20))
def test_a_chats_parameters_are_read_back(parameters: Parameters, prompt: str, preset: str) -> None:
    setup = ChatSetup(preset, prompt, parameters)
    stored = json.loads(json.dumps(setup_to_json(setup), ensure_ascii=False))
    assert setup_from_json(stored, prompt) == setup


def document(**preset: Any) -> bytes:
    entry = {"id": "1", "name": "One", **preset}
    return json.dumps({"format": "fiddler-chat-presets", "version": 1, "presets": [entry]}).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "something else"),
        (b'{"format": "fiddler-chat-conversation", "version": 1}', "something else"),
        (b'{"format": "fiddler-chat-presets"}', "which version"),
        (b'{"format": "fiddler-chat-presets", "version": true}', "which version"),
        (b'{"format": "fiddler-chat-presets", "version": 2}', "newer version"),
        (b'{"format": "fiddler-chat-presets", "version": 1}', "list of presets"),
        (b'{"format": "fiddler-chat-presets", "version": 1, "presets": [3]}', "preset 1 is not an object"),
        (document(name=7), "“name” of preset 1"),
        (document(name=" \n "), "no name"),
        (document(id=""), "no id"),
        (document(parameters=[]), "parameters of preset 1"),
        (document(parameters={"temperature": 11}), "“Temperature” cannot be 11"),
        (document(parameters={"temperature": float("nan")}), "Temperature"),
        (document(parameters={"beams": None}), "“Beams” cannot be None"),
        (document(parameters={"top_k": 1.5}), "Top-k"),
        (document(parameters={"overflow": "forget"}), "outgrows"),
        (b" " * (MOST_BYTES + 1), "larger than 4 MiB"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(content: bytes, reason: str) -> None:
    with pytest.raises(PresetFileError) as caught:
        from_bytes(content, "mine.json")
    assert reason in str(caught.value)
    assert caught.value.action


def test_two_presets_with_one_id_are_refused() -> None:
    twice = json.loads(document())
    twice["presets"] *= 2
    with pytest.raises(PresetFileError, match="same “id”"):
        from_bytes(json.dumps(twice).encode(), "x.json")


def test_what_is_missing_has_its_default_and_what_is_unknown_is_ignored() -> None:
    (preset,) = from_bytes(b"\xef\xbb\xbf" + document(colour="red", parameters={"mood": 3}), "x.json")
    assert preset == Preset("1", "One")


def test_the_documented_example_is_one() -> None:
    text = DOCS.read_text("utf-8")
    example = text.partition("```json\n")[2].partition("```")[0]
    (preset,) = from_bytes(example.encode(), "x.json")
    assert preset.parameters == Parameters(temperature=0.2, max_tokens=300)
    assert all(f"`{name}`" in text for name in json.loads(to_text([preset]))["presets"][0]["parameters"])


def test_a_strangers_parameters_of_a_chat_are_no_setup() -> None:
    assert setup_from_json({"preset": "x", "beams": 99}, "") is None
    assert setup_from_json({"preset": 3}, "p") == ChatSetup("", "p")
