"""A conversation that outgrows the context, through the engine and its tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine import answering
from engine.errors import PromptTooLongError
from engine.events import Event, Finished, FinishReason, TurnsDropped
from engine.options import LoadOptions
from engine.params import GenerationParams, Message, OverflowPolicy, SamplingParams
from engine.runtime import Engine
from tests.engine.generation.tokenizer_folders import byte_level_folder

SYSTEM = Message("system", "Be brief.")
TURNS = [
    Message("user", "def f(x): " * 12),
    Message("assistant", "return x " * 12),
    Message("user", "What is the capital of France?"),
]
GREEDY = SamplingParams(temperature=0)


@pytest.fixture(scope="module")
def engine(make_model: Any) -> Iterator[Engine]:
    model = make_model(seed=5, vocab_size=410, max_position_embeddings=160)
    byte_level_folder(model.path)
    with Engine.load(model.path, LoadOptions(threads=2, device="cpu")) as loaded:
        yield loaded


def test_stopping_refuses_and_drops_nothing(engine: Engine) -> None:
    with pytest.raises(PromptTooLongError):
        list(engine.generate([SYSTEM, *TURNS], GenerationParams(GREEDY)))


@pytest.mark.parametrize("policy", [OverflowPolicy.DROP_OLDEST, OverflowPolicy.KEEP_LATEST])
def test_what_is_dropped_is_told_first_and_the_answer_is_that_of_the_rest(
    engine: Engine, policy: OverflowPolicy
) -> None:
    params = GenerationParams(GREEDY, max_tokens=8, ignore_eos=True, overflow=policy)
    first, *_, last = engine.generate([SYSTEM, *TURNS], params)
    assert first == TurnsDropped(2)
    *_, alone = engine.generate([SYSTEM, TURNS[-1]], params)
    assert isinstance(last, Finished)
    assert isinstance(alone, Finished)
    assert last.stats.prompt_tokens == alone.stats.prompt_tokens

    events = list(engine.generate_batch([[SYSTEM, *TURNS], [TURNS[-1]]], params))
    assert [(index, event) for index, event in events if isinstance(event, TurnsDropped)] == [
        (0, TurnsDropped(2))
    ]


@pytest.mark.parametrize("together", [False, True])
def test_closing_ends_the_generation_before_the_model_is_given_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    ended: list[bool] = []
    kept: list[Iterator[Any]] = []  # as a traceback would keep it

    def write(*_: object) -> Iterator[Any]:
        def events() -> Iterator[Any]:
            try:
                yield (0, TurnsDropped(1)) if together else TurnsDropped(1)
            finally:
                ended.append(engine._busy.locked())

        kept.append(events())
        return kept[-1]

    monkeypatch.setattr(answering, "generate_batch" if together else "generate", write)
    params = GenerationParams(GREEDY, max_tokens=8)
    chat = [TURNS[-1]]
    events: Iterator[Event | tuple[int, Event]]
    events = engine.generate_batch([chat], params) if together else engine.generate(chat, params)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert ended == [True]


def test_an_answer_that_fills_the_context_can_be_gone_on_with(engine: Engine) -> None:
    params = GenerationParams(GREEDY, max_tokens=1000, ignore_eos=True, overflow=OverflowPolicy.DROP_OLDEST)
    *_, last = engine.generate([SYSTEM, TURNS[-1]], params)
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.CONTEXT_FULL
    assert "Continue it" in last.message
    *_, stopped = engine.generate([SYSTEM, TURNS[-1]], GenerationParams(GREEDY, 1000, ignore_eos=True))
    assert isinstance(stopped, Finished)
    assert "Nothing was dropped" in stopped.message
