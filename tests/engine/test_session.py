"""The cache always holds what the prompt begins with, and at least one token is read again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from typing import Any

import pytest
import torch
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


class Short(ScriptedModel):
    """A model whose GPU has memory for `limit` tokens at a time, and no more."""

    limit = 10
    refused = 0

    def forward(self, token_ids: torch.Tensor, cache: Any, **options: Any) -> torch.Tensor | None:
        if len(token_ids) > self.limit:
            self.refused += 1
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().forward(token_ids, cache, **options)


def test_a_prompt_is_read_in_shorter_chunks_where_memory_runs_out() -> None:
    model = Short(lambda history: len(history) % 7)
    model.limit = 20
    session = Session(model, 1000, 64)
    prompt = list(range(40)) * 5
    session.begin(prompt)
    results = list(session.read(prompt))
    assert list(chain(*model.reads)) == prompt == model.cache.tokens
    assert results[-1] is not None
    assert results[-1].argmax() == len(prompt) % 7


def read_in_a_batch(session: Session, prompt: list[int]) -> None:
    list(session.read_into(session._model.new_cache(session.capacity), prompt))


def read_alone(session: Session, prompt: list[int]) -> None:
    session.begin(prompt)
    list(session.read(prompt))


@pytest.mark.parametrize("read", [read_alone, read_in_a_batch])
def test_where_memory_stays_short_a_prompt_costs_one_attempt(read: Callable[..., None]) -> None:
    model = Short(lambda history: len(history) % 7)
    model.limit = 20
    session = Session(model, 1000, 64)
    for number in range(5):
        read(session, [number] * 200)
        assert model.refused == 2 + number  # 64 and 32, and then 32 once for each prompt
        assert model.cache.tokens == [number] * 200
    assert max(map(len, model.reads)) == 16


@pytest.mark.parametrize("read", [read_alone, read_in_a_batch])
def test_chunks_grow_to_the_planned_length_once_there_is_memory_again(read: Callable[..., None]) -> None:
    model = Short(lambda history: len(history) % 7)
    model.limit = 20
    session = Session(model, 1000, 100)
    read(session, [0] * 200)
    assert max(map(len, model.reads)) == 16  # after 100, 50 and 25
    model.limit = 1000
    for number, longest in enumerate((32, 64, 100, 100), 1):
        model.reads.clear()
        read(session, [number] * 200)
        assert max(map(len, model.reads)) == longest
        assert model.cache.tokens == [number] * 200
    assert model.refused == 3


@given(st.lists(st.tuples(st.integers(16, 80), st.integers(1, 200)), min_size=1, max_size=12))
def test_however_memory_comes_and_goes_few_attempts_fail(prompts: list[tuple[int, int]]) -> None:
    model = Short(lambda history: len(history) % 7)
    session = Session(model, 200, 64)
    for number, (limit, length) in enumerate(prompts):
        model.limit = limit
        read_alone(session, [number] * length)
        assert model.cache.tokens == [number] * length
    assert model.refused <= 2 + len(prompts)


def test_memory_for_not_even_a_short_chunk_is_an_error_that_changes_nothing() -> None:
    model = Short(lambda history: len(history) % 7)
    session = Session(model, 1000, 64)
    session.begin([1] * 5)
    list(session.read([1] * 5))
    session.begin([1] * 100)
    with pytest.raises(torch.OutOfMemoryError):
        list(session.read([1] * 100))
    assert session.used == 5
    model.limit = 100
    list(session.read([1] * 100))
    assert session.used == 100
