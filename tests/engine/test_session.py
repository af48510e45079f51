"""The cache always holds what the prompt begins with, and at least one token is read again."""

from __future__ import annotations

from itertools import chain, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import PromptTooLongError
from engine.session import Session, common_prefix
from tests.engine.generation.scripted import ScriptedModel

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@given(tokens, tokens)
def test_the_common_prefix_is_the_longest(first: list[int], second: list[int]) -> None:
    length = common_prefix(first, second)
    assert first[:length] == second[:length]
    assert length == min(len(first), len(second)) or first[length] != second[length]


@settings(max_examples=300)
@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=6), st.integers(1, 5), st.data())
def test_whatever_came_before_the_cache_ends_as_the_prompt(
    turns: list[tuple[list[int], list[int]]], chunk: int, data: st.DataObject
) -> None:
    model = ScriptedModel(len)
    session = Session(model, 24, chunk)
    for prompt, answer in turns:
        before = list(model.cache.tokens)
        reused = session.begin(prompt)
        assert reused == min(common_prefix(before, prompt), len(prompt) - 1)
        model.reads.clear()
        stop_after = data.draw(st.integers(1, 12))  # as a cancel between chunks does
        chunks = []
        for chunk_logits in islice(session.read(prompt), stop_after):
            chunks.append(chunk_logits)
            assert model.cache.tokens == prompt[: session.used]
        assert all(len(read) <= chunk for read in model.reads)
        assert all(logits is None for logits in chunks[:-1])
        if chunks[-1] is None:
            continue
        assert list(chain(*model.reads)) == prompt[reused:]
        assert chunks[-1].argmax() == len(prompt)
        for token in answer:
            session.step(token)
        assert model.cache.tokens == prompt + answer
        assert session.used == len(prompt + answer)


def test_a_second_turn_reads_only_what_is_new() -> None:
    model = ScriptedModel(len)
    session = Session(model, 24, 8)
    session.begin([1, 2, 3])
    list(session.read([1, 2, 3]))
    session.step(7)
    assert session.begin([1, 2, 3, 7, 4, 5]) == 4
    model.reads.clear()
    list(session.read([1, 2, 3, 7, 4, 5]))
    assert model.reads == [[4, 5]]


def test_the_same_prompt_reads_its_last_token_again() -> None:
    model = ScriptedModel(len)
    session = Session(model, 24)
    for _ in range(2):
        session.begin([1, 2, 3])
        list(session.read([1, 2, 3]))
    assert model.reads == [[1, 2, 3], [3]]


def test_a_full_session_says_so() -> None:
    session = Session(ScriptedModel(len), 3)
    session.begin([1, 2, 3])
    assert not session.full
    list(session.read([1, 2, 3]))
    assert session.full
    with pytest.raises(PromptTooLongError, match="too long"):
        session.begin([1, 2, 3, 4])
