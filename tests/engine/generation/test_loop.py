"""The token loop: what it tells, what ends it, and that a cancel is heard within one token or chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from engine.errors import GenerationError
from engine.events import Event, Finished, FinishReason, Phase, PromptProgress, StatsUpdate, TextDelta
from engine.generation.loop import generate
from engine.generation.request import Request
from engine.params import GenerationParams, SamplingParams
from engine.progress import CancelToken
from engine.session import Session
from tests.engine.generation.scripted import EOS, LetterStream, ManualClock, ScriptedModel

GREEDY = SamplingParams(temperature=0)


class Run:
    """One model, one session, and generations on them."""

    def __init__(self, script: Callable[[list[int]], int], capacity: int = 64, chunk: int = 4) -> None:
        self.model = ScriptedModel(script)
        self.session = Session(self.model, capacity, chunk)
        self.cancel = CancelToken()
        self.clock = ManualClock(0.01)

    def start(self, prompt: Sequence[int], **params: Any) -> Iterator[Event]:
        params = {"sampling": GREEDY, "max_tokens": 20} | params
        request = Request(
            prompt=prompt,
            params=GenerationParams(**params),
            eos_ids=frozenset({EOS}),
            new_text=LetterStream,
            hits=lambda: self.model.hits,
            cancelled=lambda: self.cancel.cancelled,
            started=self.clock(),
            clock=self.clock,
        )
        return generate(self.session, request)

    def answer(self, prompt: Sequence[int], **params: Any) -> tuple[str, Finished]:
        events = list(self.start(prompt, **params))
        assert isinstance(events[-1], Finished)
        assert sum(isinstance(event, Finished) for event in events) == 1
        return "".join(event.text for event in events if isinstance(event, TextDelta)), events[-1]


def says(*tokens: int, after: int) -> Callable[[list[int]], int]:
    """Answers a prompt of `after` tokens with `tokens`, then EOS."""
    return lambda history: tokens[len(history) - after] if len(history) - after < len(tokens) else EOS


def counts_up(history: list[int]) -> int:
    return 1 + len(history) % 26


def test_an_answer_is_told_from_the_prompt_to_the_end() -> None:
    run = Run(says(8, 9, after=6))
    events = list(run.start([1, 2, 3, 4, 5, 6]))
    told = [event for event in events if not isinstance(event, StatsUpdate)]
    assert told[:-1] == [
        PromptProgress(0, 6, 0),
        PromptProgress(4, 6, 0),
        PromptProgress(6, 6, 0),
        TextDelta("h"),
        TextDelta("i"),
    ]
    last = told[-1]
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.EOS
    assert last.message == ""
    assert run.model.reads == [[1, 2, 3, 4], [5, 6], [8], [9]]
    stats = last.stats
    assert (stats.prompt_tokens, stats.reused_tokens, stats.generated_tokens) == (6, 0, 2)
    assert (stats.context_used, stats.context_length) == (8, 64)
    assert stats.seed is None
    assert stats.hits.counts[Phase.PREFILL].sum() == 2
    assert stats.hits.counts[Phase.DECODE].sum() == 2


def test_the_hits_are_those_of_this_answer_alone() -> None:
    run = Run(counts_up)
    run.answer([1, 2], max_tokens=5)
    _, finished = run.answer([1, 2], max_tokens=3)
    assert finished.stats.hits.counts.sum() == 1 + 2


def test_times_and_rates_are_those_of_the_clock() -> None:
    run = Run(counts_up)
    run.clock.step = 0

    def slow(history: list[int]) -> int:
        run.clock.now += 0.5 if len(history) <= 6 else 0.2
        return counts_up(history)

    run.model.script = slow
    _, finished = run.answer([1, 2, 3, 4, 5, 6], max_tokens=11)
    stats = finished.stats
    assert stats.time_to_first_token == pytest.approx(0.5)
    assert stats.prefill_seconds == pytest.approx(0.5)
    assert stats.prefill_tokens_per_second == pytest.approx(6 / 0.5)
    assert stats.decode_seconds == pytest.approx(10 * 0.2)
    assert stats.tokens_per_second == pytest.approx(5)
    assert stats.tokens_per_second_now == pytest.approx(5)


def test_figures_come_about_ten_times_a_second() -> None:
    run = Run(counts_up, capacity=400)
    run.clock.step = 0

    def steady(history: list[int]) -> int:
        run.clock.now += 0.02
        return counts_up(history)

    run.model.script = steady
    updates = [event for event in run.start([1], max_tokens=200) if isinstance(event, StatsUpdate)]
    assert 30 <= len(updates) <= 41  # 4 seconds
    counts = [update.stats.generated_tokens for update in updates]
    assert counts == sorted(counts)


def test_the_limit_ends_the_answer_and_says_so() -> None:
    text, finished = Run(counts_up).answer([1, 2], max_tokens=3)
    assert finished.reason is FinishReason.LENGTH
    assert len(text) == finished.stats.generated_tokens == 3
    assert "3 tokens" in finished.message


def test_a_full_context_ends_the_answer_and_offers_a_new_chat() -> None:
    run = Run(counts_up, capacity=10)
    text, finished = run.answer([1, 2, 3, 4, 5, 6], max_tokens=99)
    assert finished.reason is FinishReason.CONTEXT_FULL
    assert len(text) == 5  # the last token needs no room: it is not read again
    assert finished.stats.context_used == 10
    assert "10 tokens" in finished.message
    assert "new chat" in finished.message


def test_a_prompt_that_just_fits_gets_one_token() -> None:
    text, finished = Run(counts_up, capacity=6).answer([1, 2, 3, 4, 5, 6])
    assert (len(text), finished.reason) == (1, FinishReason.CONTEXT_FULL)


def test_a_prompt_that_does_not_fit_names_both_numbers_and_changes_nothing() -> None:
    run = Run(counts_up, capacity=6)
    run.answer([1, 2, 3], max_tokens=2)
    used = run.session.used
    with pytest.raises(GenerationError) as caught:
        list(run.start([1, 2, 3, 4, 5, 6, 7]))
    assert "7 tokens" in caught.value.why
    assert "holds 6" in caught.value.why
    assert "new chat" in caught.value.action
    assert run.session.used == used


def test_an_empty_prompt_is_an_error() -> None:
    with pytest.raises(GenerationError, match="empty"):
        list(Run(counts_up).start([]))


def test_a_stop_string_across_tokens_ends_the_answer_and_is_not_shown() -> None:
    text, finished = Run(says(1, 2, 3, 4, 5, after=1)).answer([9], stop=("cd",))
    assert (text, finished.reason) == ("ab", FinishReason.STOP_STRING)


def test_text_before_and_after_a_stop_string_within_one_token() -> None:
    text, finished = Run(says(1, 32, 2, after=1)).answer([9], stop=(" en",))
    assert (text, finished.reason) == ("athe", FinishReason.STOP_STRING)


def test_what_only_looked_like_a_stop_string_is_shown_in_the_end() -> None:
    text, finished = Run(says(1, 2, after=1)).answer([9], stop=("bc",))
    assert (text, finished.reason) == ("ab", FinishReason.EOS)


def test_a_character_cut_by_the_limit_is_a_replacement_character() -> None:
    assert Run(says(1, 30, 31, after=1)).answer([9])[0] == "aé"
    assert Run(says(1, 30, 31, after=1)).answer([9], max_tokens=2)[0] == "a\N{REPLACEMENT CHARACTER}"


def test_a_loop_ends_the_answer_only_when_asked() -> None:
    run = Run(lambda history: 1 + len(history) % 3, capacity=300)
    text, finished = run.answer([9], max_tokens=200, stop_loops=True)
    assert finished.reason is FinishReason.LOOP
    assert len(text) == 64
    assert "repeat" in finished.message
    _, finished = run.answer([9], max_tokens=200)
    assert finished.reason is FinishReason.LENGTH


def test_end_tokens_can_be_ignored() -> None:
    text, finished = Run(lambda _: EOS).answer([9], max_tokens=7, ignore_eos=True)
    assert (len(text), finished.reason) == (7, FinishReason.LENGTH)


def test_a_cancel_is_heard_within_one_token() -> None:
    run = Run(counts_up)
    events = run.start([1, 2], max_tokens=20)
    for event in events:
        if isinstance(event, TextDelta):
            break
    run.cancel.cancel()
    reads = len(run.model.reads)
    rest = list(events)
    assert len(run.model.reads) - reads <= 1
    assert isinstance(rest[-1], Finished)
    assert rest[-1].reason is FinishReason.CANCELLED


def test_a_cancel_is_heard_between_chunks_of_the_prompt_and_what_was_read_stays() -> None:
    run = Run(counts_up, chunk=4)
    prompt = list(range(1, 21))
    events = run.start(prompt)
    assert [next(events), next(events)] == [PromptProgress(0, 20, 0), PromptProgress(4, 20, 0)]
    run.cancel.cancel()
    (last,) = events
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.CANCELLED
    assert last.stats.generated_tokens == 0
    run.cancel = CancelToken()
    _, finished = run.answer(prompt, max_tokens=1)
    assert finished.stats.reused_tokens == 4


def test_cancelling_before_the_start_reads_nothing() -> None:
    run = Run(counts_up)
    run.cancel.cancel()
    text, finished = run.answer([1, 2, 3])
    assert (text, finished.reason, run.model.reads) == ("", FinishReason.CANCELLED, [])


def test_an_abandoned_answer_leaves_the_session_usable() -> None:
    run = Run(counts_up)
    events = run.start([1, 2, 3])
    for event in events:
        if isinstance(event, TextDelta):
            break
    events.close()  # type: ignore[attr-defined]
    fresh, _ = Run(counts_up).answer([1, 2, 4], max_tokens=5)
    assert run.answer([1, 2, 4], max_tokens=5)[0] == fresh


def test_a_seed_repeats_the_answer_and_a_fresh_one_is_reported() -> None:
    sampling = SamplingParams(temperature=5.0)
    first, finished = Run(counts_up).answer([1], sampling=sampling, ignore_eos=True)
    seed = finished.stats.seed
    assert seed is not None
    again, _ = Run(counts_up).answer([1], sampling=SamplingParams(5.0, seed=seed), ignore_eos=True)
    assert again == first


def test_the_penalty_counts_prompt_and_answer() -> None:
    sampling = SamplingParams(temperature=0, repetition_penalty=10.0)
    run = Run(lambda _: 2)  # one score of 5, all others 0: a penalised 0.5 still wins
    assert run.answer([2], sampling=sampling, max_tokens=2)[0] == "bb"


def test_unusable_output_is_an_error() -> None:
    run = Run(counts_up)
    run.model.forward = lambda ids, cache, **_: torch.full((1, 50), torch.nan)  # type: ignore
    with pytest.raises(GenerationError, match="not a number"):
        list(run.start([1]))
