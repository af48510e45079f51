"""The facade on small random models: reuse between turns, mixed placements, refusals, closing."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import (
    Cancelled,
    CheckpointError,
    EngineError,
    GenerationError,
    MemoryFullError,
    ShortageError,
)
from engine.events import Event, Finished, FinishReason, PromptProgress, TextDelta
from engine.generation.defaults import default_params, eos_ids
from engine.options import LoadOptions
from engine.params import GenerationParams, Message, SamplingParams
from engine.progress import CancelToken, Progress
from engine.runtime import Engine
from tests.engine.generation.tokenizer_folders import byte_level_folder

CPU = LoadOptions(threads=2, device="cpu")  # float32: the same answer whatever is reused
GREEDY = GenerationParams(SamplingParams(temperature=0), max_tokens=24, ignore_eos=True)
CHAT = [Message("system", "Be brief."), Message("user", "What is the capital of France?")]
QUESTION = Message("user", "And the fox?")


@pytest.fixture(scope="module")
def folder(make_model: Any) -> Path:
    """A random model with a byte-level tokenizer and a sliding window shorter than the conversations."""
    model = make_model(seed=5, vocab_size=410, max_position_embeddings=320, sliding_window=40)
    byte_level_folder(model.path)
    return model.path


@pytest.fixture
def engine(folder: Path, own_data_dir: Path) -> Iterator[Engine]:
    with Engine.load(folder, CPU) as loaded:
        yield loaded


@pytest.fixture(autouse=True)
def own_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No saved calibration of the real user's is found."""
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    return tmp_path


def run(events: Iterator[Event]) -> tuple[str, Finished]:
    told = list(events)
    assert isinstance(told[-1], Finished)
    return "".join(event.text for event in told if isinstance(event, TextDelta)), told[-1]


def answer(
    engine: Engine, messages: Sequence[Message], params: GenerationParams = GREEDY
) -> tuple[str, Finished]:
    return run(engine.generate(messages, params))


def fresh_answer(folder: Path, messages: Sequence[Message]) -> str:
    with Engine.load(folder, CPU) as other:
        return answer(other, messages)[0]


def test_a_second_turn_reuses_the_first_and_answers_the_same_as_a_fresh_run(
    engine: Engine, folder: Path
) -> None:
    first, finished = answer(engine, CHAT)
    assert finished.stats.reused_tokens == 0
    assert finished.stats.prompt_tokens == engine.count_prompt(CHAT)
    longer = [*CHAT, Message("assistant", first), QUESTION]
    second, again = answer(engine, longer)
    assert again.stats.reused_tokens >= finished.stats.prompt_tokens
    assert again.stats.prompt_tokens > 41  # past the sliding window
    assert second == fresh_answer(folder, longer)


def test_another_conversation_and_the_way_back_are_answered_as_in_fresh_runs(
    engine: Engine, folder: Path
) -> None:
    before = answer(engine, CHAT)[0]
    other = [Message("user", "def f(x): " * 12)]
    assert answer(engine, other)[0] == fresh_answer(folder, other)
    assert answer(engine, CHAT)[0] == before


def test_raw_text_is_continued_without_a_template(engine: Engine) -> None:
    text, finished = run(engine.continue_raw("The capital", GREEDY))
    assert text
    assert finished.stats.prompt_tokens == engine.count_tokens("The capital")
    with pytest.raises(GenerationError, match="empty"):
        run(engine.continue_raw("", GREEDY))


def test_a_full_context_and_a_prompt_that_is_too_long(folder: Path) -> None:
    with Engine.load(folder, LoadOptions(context_length=64, device="cpu")) as engine:
        prompt = answer(engine, CHAT[1:])[1].stats.prompt_tokens
        params = GenerationParams(SamplingParams(temperature=0), max_tokens=500, ignore_eos=True)
        _, finished = answer(engine, CHAT[1:], params)
        assert finished.reason is FinishReason.CONTEXT_FULL
        assert finished.stats.generated_tokens == 64 - prompt + 1
        assert "new chat" in finished.message
        with pytest.raises(GenerationError, match="too long") as caught:
            answer(engine, [Message("user", "fox " * 60)])
        assert "holds 64" in caught.value.why


def test_a_cancel_keeps_what_was_written(engine: Engine) -> None:
    cancel = CancelToken()
    text = ""
    for event in engine.generate(CHAT, GREEDY, cancel):
        if isinstance(event, TextDelta):
            text += event.text
            cancel.cancel()
    assert isinstance(event, Finished)
    assert event.reason is FinishReason.CANCELLED
    assert text
    assert event.stats.generated_tokens < 24


def test_only_one_generation_runs_at_a_time(engine: Engine) -> None:
    events = engine.generate(CHAT, GREEDY)
    next(events)
    with pytest.raises(GenerationError, match="busy") as caught:
        answer(engine, CHAT)
    assert caught.value.action
    with pytest.raises(GenerationError, match="busy"), engine.exclusive():
        pass
    events.close()  # type: ignore[attr-defined]
    assert answer(engine, CHAT)[1].reason is FinishReason.LENGTH


def test_a_refused_conversation_does_not_keep_the_engine_busy(engine: Engine) -> None:
    with pytest.raises(GenerationError, match="nothing to answer"):
        answer(engine, [])
    assert answer(engine, CHAT)[0]


def test_the_policies_answer_alike_without_a_gpu_and_say_so(folder: Path) -> None:
    answers = set()
    for policy in ("paper", "cpu", "stream"):
        with Engine.load(folder, LoadOptions(policy=policy, threads=2, device="cpu")) as engine:
            answers.add(answer(engine, CHAT)[0])
            status = engine.status()
            assert status.policy == policy
            if not status.has_gpu and policy != "cpu":
                assert any(policy in note for note in status.notes)
    assert len(answers) == 1


def test_the_status_tells_what_is_loaded(engine: Engine) -> None:
    status = engine.status()
    assert (status.layers, status.experts, status.context_length) == (2, 4, 320)
    assert status.residency.shape == (2, 4)
    assert status.threads == 2
    assert status.ram_used > 50 * 2**20
    assert not status.calibrated
    assert not status.is_starter
    if not status.has_gpu:
        assert status.resident_experts == 0
        assert status.vram_budget == status.vram_used == 0
    answer(engine, CHAT)
    assert engine.status().context_used > 24


def test_closing_ends_the_threads_and_further_use_is_an_error(folder: Path) -> None:
    def ours() -> set[threading.Thread]:
        return set(threading.enumerate())

    before = ours()
    engine = Engine.load(folder, CPU)
    pool = engine.parts.pool
    engine.close()
    engine.close()
    assert pool.closed
    assert ours() == before
    for use in (lambda: answer(engine, CHAT), engine.status, lambda: engine.parts):
        with pytest.raises(EngineError, match="closed"):
            use()


def test_closing_while_an_answer_runs_ends_it_at_its_next_token(folder: Path) -> None:
    engine = Engine.load(folder, CPU)
    pool = engine.parts.pool
    events = engine.generate(CHAT, GREEDY)
    list(takewhile(lambda event: not isinstance(event, TextDelta), events))
    engine.close()
    assert not pool.closed
    rest = list(events)
    assert isinstance(rest[-1], Finished)
    assert rest[-1].reason is FinishReason.CANCELLED
    assert pool.closed


def test_loading_tells_its_progress_and_can_be_cancelled(folder: Path) -> None:
    cancel = CancelToken()
    seen: list[Progress] = []

    def progress(step: Progress) -> None:
        seen.append(step)
        if step.total:
            cancel.cancel()

    with pytest.raises(Cancelled):
        Engine.load(folder, CPU, progress=progress, cancel=cancel)
    assert seen[0].what
    assert seen[-1].total


def test_too_little_memory_is_refused_with_the_missing_amount_unless_forced(folder: Path) -> None:
    reserve = LoadOptions(ram_reserve=10**15, device="cpu")
    with pytest.raises(ShortageError) as caught:
        Engine.load(folder, reserve)
    assert "missing" in caught.value.what
    assert caught.value.action
    with Engine.load(folder, LoadOptions(ram_reserve=10**15, device="cpu", force=True)) as engine:
        assert answer(engine, CHAT)[0]


def test_a_tokenizer_of_another_model_is_refused(make_model: Any) -> None:
    model = make_model(vocab_size=300)
    byte_level_folder(model.path)
    with pytest.raises(CheckpointError, match="does not belong") as caught:
        Engine.load(model.path)
    assert "300" in caught.value.why


def test_the_prompt_is_read_in_chunks_that_are_told(engine: Engine) -> None:
    events = list(engine.generate([Message("user", "fox jumps over " * 40)], GREEDY))
    told = [event for event in events if isinstance(event, PromptProgress)]
    assert [event.done for event in told] == [0, 128, told[-1].total]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, GenerationParams()),
        ({"bos_token_id": 1}, GenerationParams()),
        ({"do_sample": False, "temperature": 0.9}, GenerationParams(SamplingParams(temperature=0))),
        ({"top_p": 0.9, "temperature": 0.6}, GenerationParams(SamplingParams(temperature=0.6, top_p=0.9))),
        (
            {"top_k": None, "repetition_penalty": 1.1},
            GenerationParams(SamplingParams(repetition_penalty=1.1)),
        ),
        ({"top_k": 40.0}, GenerationParams(SamplingParams(top_k=40))),
    ],
)
def test_the_folder_sets_the_default_parameters(
    tmp_path: Path, content: dict[str, Any] | None, expected: GenerationParams
) -> None:
    if content is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(content))
    found = default_params(tmp_path, is_starter=False)
    assert found == expected
    assert type(found.sampling.top_k) is int  # JSON's 40.0 is equal, but counts nothing
    starter = default_params(tmp_path, is_starter=True)
    assert starter.sampling.greedy
    assert starter.stop_loops


@pytest.mark.parametrize("text", ["{", '{"temperature": -1}', '{"temperature": "hot"}', '{"top_k": 1.5}'])
def test_an_unusable_generation_config_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(CheckpointError, match="generation_config"):
        default_params(tmp_path, is_starter=False)


def test_the_folder_names_the_tokens_that_end_an_answer(tmp_path: Path, folder: Path) -> None:
    assert eos_ids(tmp_path) == frozenset()
    (tmp_path / "config.json").write_text('{"eos_token_id": 2}')
    assert eos_ids(tmp_path) == {2}
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [3, 4]}')
    assert eos_ids(tmp_path) == {3, 4}
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    (copy / "generation_config.json").write_text(json.dumps({"eos_token_id": list(range(410))}))
    with Engine.load(copy, CPU) as engine:
        text, finished = answer(engine, CHAT, GenerationParams(SamplingParams(temperature=0)))
    assert (text, finished.reason, finished.stats.generated_tokens) == ("", FinishReason.EOS, 0)


def test_a_full_graphics_card_is_told_in_words_to_whoever_measures(engine: Engine) -> None:
    def fill() -> None:
        with engine.exclusive():
            raise torch.OutOfMemoryError

    with pytest.raises(MemoryFullError, match="graphics card"):
        fill()
    assert answer(engine, CHAT)[0]  # the model is free again


def test_cuda_counts_gpus_as_nvml_does() -> None:
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
