"""Answers written together are those written alone, each with its own seed, stop, end and length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from engine.errors import GenerationError
from engine.events import Event, Finished, FinishReason, Phase, PromptProgress, StatsUpdate, TextDelta
from engine.generation.batch import generate_batch
from engine.generation.loop import generate
from engine.generation.request import Request
from engine.models.loader import LoadedModel, load_model
from engine.options import LoadOptions
from engine.params import MAX_TOGETHER, GenerationParams, SamplingParams
from engine.session import Session
from kernels.cpu import Isa
from kernels.isa import available_isas
from tests.engine.generation.scripted import GlyphStream, ManualClock

ENDS = frozenset({7, 23})
GREEDY = SamplingParams(temperature=0)
PROMPTS = ([5], [3, 17, 44, 9, 0, 21, 33], list(range(40, 12, -2)), [8, 8], list(range(30)))


@pytest.fixture(scope="module")
def loaded(make_model: Any) -> Iterator[LoadedModel]:
    isa = min(max(available_isas()), Isa.AVX2)  # whose activations are float32
    with load_model(make_model(seed=31).path, LoadOptions(device="cpu", threads=2), isa=isa) as loaded:
        yield loaded


def request_of(loaded: LoadedModel, prompt: Sequence[int], params: GenerationParams, **more: Any) -> Request:
    given = {"cancelled": lambda: False, "started": 0.0} | more
    return Request(
        prompt=prompt,
        params=params,
        eos_ids=ENDS,
        new_text=GlyphStream,
        hits=loaded.counters.snapshot,
        **given,
    )


def ended(events: Sequence[Event]) -> tuple[str, FinishReason, int, int, int | None]:
    """The text, and what the last event says that does not depend on time or on others."""
    last = events[-1]
    assert isinstance(last, Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    stats = last.stats
    return text, last.reason, stats.generated_tokens, stats.context_used, stats.seed


def together(session: Session, requests: Sequence[Request]) -> list[list[Event]]:
    told: list[list[Event]] = [[] for _ in requests]
    for index, event in generate_batch(session, requests):
        told[index].append(event)
    return told


def alone(loaded: LoadedModel, request: Request, capacity: int) -> list[Event]:
    return list(generate(Session(loaded.model, capacity, 8), request))


@pytest.mark.parametrize("capacity", [400, 64])
def test_each_answer_is_the_one_it_would_be_alone(loaded: LoadedModel, capacity: int) -> None:
    """With 400 places all are written at once; with 64 some wait, and gaps between prompts are closed."""
    params = [
        GenerationParams(GREEDY, max_tokens=30, ignore_eos=True),
        GenerationParams(SamplingParams(0.9, seed=3), max_tokens=12),
        GenerationParams(SamplingParams(1.5, top_k=5, seed=4), max_tokens=25, ignore_eos=True),
        GenerationParams(SamplingParams(0.8, repetition_penalty=1.4, seed=5), max_tokens=99),
        GenerationParams(GREEDY, max_tokens=99, ignore_eos=True, stop_loops=True),
        GenerationParams(GREEDY, max_tokens=18, ignore_eos=True, stop=(chr(0x4E00 + 12),)),
        GenerationParams(GREEDY, max_tokens=1),
    ]
    requests = [
        request_of(loaded, prompt, one)
        for number, one in enumerate(params)
        for prompt in PROMPTS[number % 2 :]
    ]
    found = [ended(events) for events in together(Session(loaded.model, capacity, 8), requests)]
    expected = [ended(alone(loaded, request, capacity)) for request in requests]
    assert found == expected
    reasons = {reason for _, reason, *_ in found}
    assert {FinishReason.EOS, FinishReason.LENGTH, FinishReason.STOP_STRING} <= reasons
    assert (FinishReason.CONTEXT_FULL in reasons) == (capacity == 64)


def test_an_expert_runs_once_for_all_answers(loaded: LoadedModel) -> None:
    """Eight times the same conversation takes the executions of one."""
    params = GenerationParams(GREEDY, max_tokens=10, ignore_eos=True)
    counts = []
    for copies in (1, 8):
        loaded.counters.reset()
        together(Session(loaded.model, 300, 8), [request_of(loaded, PROMPTS[1], params)] * copies)
        counts.append(loaded.counters.snapshot().counts[Phase.DECODE])
    assert counts[0].sum() > 0
    assert (counts[0] == counts[1]).all()


def test_what_does_not_fit_waits_in_order(loaded: LoadedModel) -> None:
    params = GenerationParams(GREEDY, max_tokens=11, ignore_eos=True)
    requests = [request_of(loaded, list(range(10)), params) for _ in range(5)]
    order = []
    for index, event in generate_batch(Session(loaded.model, 40, 8), requests):
        if isinstance(event, PromptProgress) and event.done == 0:
            order.append(index)
        if isinstance(event, Finished):
            order.append(f"end of {index}")
    assert order == [0, 1, "end of 0", "end of 1", 2, 3, "end of 2", "end of 3", 4, "end of 4"]


def test_more_answers_than_are_written_at_once(loaded: LoadedModel) -> None:
    params = GenerationParams(GREEDY, max_tokens=3, ignore_eos=True)
    requests = [request_of(loaded, [number], params) for number in range(MAX_TOGETHER + 3)]
    found = [ended(events) for events in together(Session(loaded.model, 400, 8), requests)]
    assert found == [ended(alone(loaded, request, 400)) for request in requests]


def test_prompts_are_read_in_chunks_and_told(loaded: LoadedModel) -> None:
    request = request_of(loaded, list(range(20)), GenerationParams(GREEDY, max_tokens=2))
    (events,) = together(Session(loaded.model, 60, 8), [request])
    progress = [event for event in events if isinstance(event, PromptProgress)]
    assert progress == [PromptProgress(done, 20, 0) for done in (0, 8, 16, 20)]


def test_one_may_be_cancelled_and_the_others_go_on(loaded: LoadedModel) -> None:
    params = GenerationParams(GREEDY, max_tokens=20, ignore_eos=True)
    told: list[list[Event]] = [[], [], []]

    def cancelled_after(index: int, events: int) -> Callable[[], bool]:
        return lambda: len(told[index]) > events

    requests = [
        request_of(loaded, prompt, params, cancelled=cancelled_after(index, limit))
        for index, (prompt, limit) in enumerate(zip(PROMPTS[:3], (1000, 6, 1), strict=True))
    ]
    for index, event in generate_batch(Session(loaded.model, 200, 8), requests):
        told[index].append(event)
    texts, reasons, *_ = zip(*map(ended, told), strict=True)
    assert reasons == (FinishReason.LENGTH, FinishReason.CANCELLED, FinishReason.CANCELLED)
    expected = ended(alone(loaded, request_of(loaded, PROMPTS[0], params), 200))
    assert ended(told[0]) == expected
    assert 0 < len(texts[1]) < 8
    assert texts[2] == ""


def test_a_prompt_that_cannot_fit_is_refused_before_anything_is_read(loaded: LoadedModel) -> None:
    params = GenerationParams(GREEDY, max_tokens=2)
    session = Session(loaded.model, 20, 8)
    for wrong, message in (([], "empty"), (list(range(21)), "too long")):
        loaded.counters.reset()
        requests = [request_of(loaded, prompt, params) for prompt in ([1, 2], wrong)]
        with pytest.raises(GenerationError, match=message):
            list(generate_batch(session, requests))
        assert loaded.counters.snapshot().counts.sum() == 0
    assert list(generate_batch(session, [])) == []


def test_the_session_is_usable_before_and_after(loaded: LoadedModel) -> None:
    params = GenerationParams(GREEDY, max_tokens=8, ignore_eos=True)
    session = Session(loaded.model, 100, 8)
    request = request_of(loaded, PROMPTS[1], params)
    before = ended(list(generate(session, request)))
    abandoned = generate_batch(session, [request, request])
    for _ in range(8):
        next(abandoned)
    abandoned.close()
    assert session.used == 0
    assert ended(list(generate(session, request))) == before


def test_figures_come_for_each_answer(loaded: LoadedModel) -> None:
    params = GenerationParams(GREEDY, max_tokens=12, ignore_eos=True)
    clock = ManualClock(0.02)
    requests = [request_of(loaded, prompt, params, clock=clock, started=100.0) for prompt in PROMPTS[:2]]
    for events in together(Session(loaded.model, 100, 8), requests):
        updates = [event.stats for event in events if isinstance(event, StatsUpdate)]
        assert updates
        assert all(stats.tokens_per_second_now > 0 for stats in updates[1:])
        assert all(stats.context_used < 100 for stats in updates)
