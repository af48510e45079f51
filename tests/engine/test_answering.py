"""Beam search and answers written together through the engine: events, cancelling, the prefix cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.accounting import Part
from engine.errors import EngineError, GenerationError
from engine.events import Event, Finished, FinishReason, PromptProgress, TextDelta
from engine.options import LoadOptions
from engine.params import GenerationParams, Message, SamplingParams
from engine.progress import CancelToken
from engine.runtime import Engine
from kernels.cpu import Isa
from kernels.isa import available_isas
from tests.engine.generation.tokenizer_folders import byte_level_folder

CHAT = [Message("system", "Be brief."), Message("user", "What is the capital of France?")]
OTHER = [Message("user", "def f(x): " * 5)]
BEAMS = GenerationParams(max_tokens=24, beams=4, answers=4, ignore_eos=True)


@pytest.fixture(scope="module")
def folder(make_model: Any) -> Path:
    model = make_model(seed=5, vocab_size=410, max_position_embeddings=320, sliding_window=40)
    byte_level_folder(model.path)
    return model.path


@pytest.fixture
def engine(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("FIDDLER_MAX_ISA", min(max(available_isas()), Isa.AVX2).value)  # float32 activations
    with Engine.load(folder, LoadOptions(threads=2, device="cpu")) as loaded:
        yield loaded


def told(events: Iterator[Event]) -> tuple[list[str], Finished]:
    parts, last = [], None
    for event in events:
        assert last is None
        if isinstance(event, TextDelta):
            parts.append(event.text)
        elif isinstance(event, Finished):
            last = event
    assert last is not None
    return parts, last


def test_a_beam_search_tells_the_best_answer_and_all_scores(engine: Engine) -> None:
    parts, finished = told(engine.generate(CHAT, BEAMS))
    scores = [answer.score for answer in finished.answers]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert "".join(parts) == finished.answers[0].text
    assert len({answer.text for answer in finished.answers}) == 4
    assert finished.reason is FinishReason.LENGTH
    assert "24 tokens" in finished.message
    assert finished.stats.generated_tokens == 24
    assert finished.stats.seed is None


def test_the_time_of_a_search_and_of_answers_together_is_accounted_for(engine: Engine) -> None:
    plain = GenerationParams(SamplingParams(temperature=0), max_tokens=24, ignore_eos=True)
    _, search = told(engine.generate(CHAT, BEAMS))
    finished = [search.stats]
    for _, event in engine.generate_batch([CHAT, OTHER], plain):
        if isinstance(event, Finished):
            finished.append(event.stats)
    assert len(finished) == 3
    for stats in finished:
        time = stats.time
        assert 22 <= time.steps <= 24  # steps of the search, or of both answers
        assert sum(time.parts.values()) == pytest.approx(time.whole)
        assert time.parts[Part.CPU_EXPERTS] > 0 < time.parts[Part.ATTENTION]
    assert search.stats.time.whole == pytest.approx(search.stats.decode_seconds, rel=0.25)


def test_text_comes_before_the_end_where_the_beams_agree(engine: Engine) -> None:
    parts, _ = told(engine.generate(CHAT, GenerationParams(max_tokens=80, beams=2, ignore_eos=True)))
    assert len(parts) > 1


def test_the_next_turn_reuses_what_the_winner_left(engine: Engine) -> None:
    """And it is answered as if nothing had been there."""
    parts, first = told(engine.generate(CHAT, BEAMS))
    assert engine.status().context_used == first.stats.context_used
    assert first.stats.context_used > first.stats.prompt_tokens
    more = [*CHAT, Message("assistant", "".join(parts)), Message("user", "And the fox?")]
    for params in (BEAMS, GenerationParams(SamplingParams(temperature=0), max_tokens=20, ignore_eos=True)):
        before = engine.status().context_used
        second = told(engine.generate(more, params))
        assert second[1].stats.reused_tokens >= first.stats.prompt_tokens
        assert second[1].stats.reused_tokens <= before
        told(engine.generate(OTHER, params))
        again = told(engine.generate(more, params))
        assert again[1].stats.reused_tokens < first.stats.prompt_tokens
        assert "".join(again[0]) == "".join(second[0])
        told(engine.generate(CHAT, BEAMS))


def test_the_kept_part_of_the_answer_is_the_answer(engine: Engine) -> None:
    """The continuation after a beam search equals the one that reads everything anew."""
    parts, finished = told(engine.continue_raw("The quick brown fox", BEAMS))
    assert finished.stats.context_used > finished.stats.prompt_tokens
    greedy = GenerationParams(SamplingParams(temperature=0), max_tokens=10, ignore_eos=True)
    text = "The quick brown fox" + "".join(parts) + " over"
    kept, with_kept = told(engine.continue_raw(text, greedy))
    told(engine.continue_raw("Was", greedy))
    fresh, without = told(engine.continue_raw(text, greedy))
    assert without.stats.reused_tokens <= 1 < with_kept.stats.reused_tokens
    assert "".join(kept) == "".join(fresh)


def test_a_cancelled_search_ends_with_the_best_so_far_and_the_session_goes_on(engine: Engine) -> None:
    whole, _ = told(engine.generate(CHAT, BEAMS))
    cancel = CancelToken()
    events = engine.generate(CHAT, BEAMS, cancel)
    for event in events:
        if isinstance(event, PromptProgress) and event.done == event.total:
            cancel.cancel()
            break
    parts, finished = told(events)
    assert finished.reason is FinishReason.CANCELLED
    assert len(finished.answers) == 4
    assert finished.stats.generated_tokens == 1
    assert "".join(parts) == finished.answers[0].text
    assert "".join(told(engine.generate(CHAT, BEAMS))[0]) == "".join(whole)


def test_a_search_cancelled_while_reading_has_no_answers(engine: Engine) -> None:
    cancel = CancelToken()
    cancel.cancel()
    parts, finished = told(engine.generate(CHAT, BEAMS, cancel))
    assert (parts, finished.reason, finished.answers) == ([], FinishReason.CANCELLED, ())


def test_an_abandoned_search_leaves_the_prompt(engine: Engine) -> None:
    whole, finished = told(engine.generate(CHAT, BEAMS))
    events = engine.generate(CHAT, BEAMS)
    for event in events:
        if isinstance(event, TextDelta):
            break
    events.close()  # type: ignore[attr-defined]
    assert engine.status().context_used == finished.stats.prompt_tokens
    assert "".join(told(engine.generate(CHAT, BEAMS))[0]) == "".join(whole)


def test_a_stop_string_ends_the_answers_that_have_it(engine: Engine) -> None:
    _, finished = told(engine.generate(CHAT, BEAMS))
    stop = finished.answers[0].text[3:5]
    params = GenerationParams(max_tokens=24, beams=4, answers=4, ignore_eos=True, stop=(stop,))
    parts, finished = told(engine.generate(CHAT, params))
    assert "".join(parts) == finished.answers[0].text
    assert all(stop not in answer.text for answer in finished.answers)
    stopped = [answer for answer in finished.answers if answer.reason is FinishReason.STOP_STRING]
    assert stopped
    assert all(answer.tokens < 24 for answer in stopped)


def test_conversations_are_answered_together_as_alone(engine: Engine) -> None:
    conversations = [CHAT, OTHER, CHAT[1:], [Message("user", "Hi")]]
    params = [
        GenerationParams(SamplingParams(temperature=0), max_tokens=20),
        GenerationParams(SamplingParams(1.0, seed=8), max_tokens=15, ignore_eos=True),
        GenerationParams(SamplingParams(1.3, seed=9), max_tokens=10, ignore_eos=True),
        GenerationParams(SamplingParams(temperature=0), max_tokens=24, ignore_eos=True),
    ]
    events: list[list[Event]] = [[] for _ in conversations]
    for index, event in engine.generate_batch(conversations, params):
        events[index].append(event)
    together = [told(iter(each)) for each in events]
    assert engine.status().context_used == 0
    for (parts, finished), conversation, one in zip(together, conversations, params, strict=True):
        alone, expected = told(engine.generate(conversation, one))
        assert "".join(parts) == "".join(alone)
        assert finished.reason is expected.reason


def test_a_batch_is_refused_where_it_makes_no_sense(engine: Engine) -> None:
    with pytest.raises(GenerationError, match="one conversation at a time"):
        engine.generate_batch([CHAT, OTHER], BEAMS)
    with pytest.raises(ValueError, match="1 parameters for 2 conversations"):
        engine.generate_batch([CHAT, OTHER], [GenerationParams()])


def test_closing_the_engine_ends_all_answers(engine: Engine) -> None:
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=50, ignore_eos=True)
    reasons = {}
    for index, event in engine.generate_batch([CHAT, OTHER], params):
        if isinstance(event, TextDelta):
            engine.close()
        if isinstance(event, Finished):
            reasons[index] = event.reason
    assert reasons == {0: FinishReason.CANCELLED, 1: FinishReason.CANCELLED}
    with pytest.raises(EngineError, match="closed"):
        list(engine.generate(CHAT, params))
