from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
import torch

from engine.calibration import probes
from engine.calibration.popularity import read_popularity
from engine.calibration.probes import CpuProbes, DecodeProbes, shuffled_experts
from engine.calibration.stand_ins import CountedRouting, SkippedExperts
from engine.calibration.timing import Timing
from engine.events import Phase, Place
from engine.executor import ExpertExecutor
from engine.models.loader import LoadedModel, load_model
from engine.models.mixtral import MixtralModel
from engine.options import LoadOptions
from kernels.cpu import CpuPool


@pytest.fixture
def parts(make_model: Callable[..., Any]) -> Iterator[LoadedModel]:
    loaded = load_model(make_model(num_hidden_layers=3).path, LoadOptions(threads=1, device="cpu"))
    yield loaded
    loaded.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Run each action five times without looking at a clock; returns what was asked of `measure`."""
    asked: list[dict[str, Any]] = []

    def measure(action: Callable[[], object], **options: Any) -> Timing:
        asked.append(options)
        for _ in range(5):
            action()
        return Timing(1e-3, 0.0)

    monkeypatch.setattr(probes, "measure", measure)
    return asked


def ids(count: int) -> list[int]:
    return torch.randint(0, 61, (count,), generator=torch.Generator().manual_seed(5)).tolist()


def test_shuffled_experts_are_all_experts_in_a_repeatable_order(parts: LoadedModel) -> None:
    order = shuffled_experts(parts.info.config)
    assert sorted(order) == [(layer, expert) for layer in range(3) for expert in range(4)]
    assert order == shuffled_experts(parts.info.config)
    assert order != shuffled_experts(parts.info.config, seed=1)


def test_cpu_probes_run_another_expert_each_time_with_the_asked_tokens(
    parts: LoadedModel, quick: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    real = CpuPool.run_experts

    def run(self: CpuPool, x: Any, jobs: Any, shape: Any, out: Any) -> None:
        before = out.clone()
        real(self, x, jobs, shape, out)
        assert (out != before).any()  # it really computes
        (job,) = jobs
        seen.append((job.block.data_ptr(), len(x)))
        assert job.tokens.tolist() == list(range(len(x)))

    monkeypatch.setattr(CpuPool, "run_experts", run)
    CpuProbes(parts, shuffled_experts(parts.info.config)).expert(7)
    assert [tokens for _, tokens in seen] == [7] * 5
    assert len({block for block, _ in seen}) == 5


def test_a_step_without_experts_runs_none_and_leaves_the_model_alone(
    parts: LoadedModel, quick: list[Any]
) -> None:
    prompt = ids(20)
    parts.counters.reset()
    DecodeProbes(parts.model, prompt).without_experts()
    assert parts.counters.snapshot().total(Place.CPU) == 0
    DecodeProbes(parts.model, prompt).whole()
    hits = parts.counters.snapshot()
    assert hits.total(Place.CPU, Phase.DECODE) == 5 * 3 * 2  # steps × layers × top-k
    assert hits.total(Place.CPU, Phase.PREFILL) > 0


def test_decode_probes_fit_into_a_short_context(make_model: Callable[..., Any], quick: list[Any]) -> None:
    short = load_model(make_model(max_position_embeddings=16).path, LoadOptions(threads=1, device="cpu"))
    DecodeProbes(short.model, ids(60)).whole()
    short.close()
    assert quick[-1]["most"] + quick[-1]["warm_up"] <= 16 - 8


def test_skipped_experts_add_nothing(parts: LoadedModel) -> None:
    """Hidden states of a model whose experts are skipped are those of one whose experts are all zero."""
    skipping = cast(ExpertExecutor, SkippedExperts(parts.model.executor))
    model = parts.model
    skipped = MixtralModel(model.config, model.weights, skipping, model.device)
    logits = skipped.forward(torch.tensor(ids(9)), skipped.new_cache(9))
    parts.bank.arena.zero_()
    expected = model.forward(torch.tensor(ids(9)), model.new_cache(9))
    assert logits is not None
    assert expected is not None
    assert torch.equal(logits, expected)


def test_counting_changes_nothing_and_counts_what_really_ran(parts: LoadedModel) -> None:
    tokens, model = ids(33), parts.model
    plain = model.forward(torch.tensor(tokens), model.new_cache(33), logits="all")
    counted = CountedRouting(model.executor)
    reader = MixtralModel(model.config, model.weights, cast(ExpertExecutor, counted), model.device)
    again = reader.forward(torch.tensor(tokens), reader.new_cache(33), logits="all")
    assert plain is not None
    assert again is not None
    assert torch.equal(plain, again)
    assert counted.tokens == 33
    # One token at a time, each execution of an expert is one choice by one token.
    parts.counters.reset()
    cache = model.new_cache(33)
    for token in tokens:
        model.forward(torch.tensor([token]), cache)
    executions = parts.counters.snapshot().counts[..., Place.CPU].sum(axis=0)
    assert (executions == counted.counts).all()
    np.testing.assert_allclose(counted.popularity().sum(axis=1), 2)


def test_popularity_is_read_in_chunks_that_can_be_left(parts: LoadedModel) -> None:
    tokens, starts = ids(300), []
    result = read_popularity(parts.model, tokens, starts.append)
    assert starts == [0, 128, 256]
    assert result.tokens == 300
    np.testing.assert_allclose(result.table.sum(axis=1), 2)
    assert result.seconds > 0

    class LeftError(Exception):
        pass

    def leave(start: int) -> None:
        if start:
            raise LeftError

    with pytest.raises(LeftError):
        read_popularity(parts.model, tokens, leave)
