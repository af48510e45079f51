from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
import torch

from engine.accounting import TimeAccount
from engine.calibration import probes
from engine.calibration.popularity import read_popularity
from engine.calibration.probes import DecodeProbes, expert_blocks, shuffled_experts
from engine.calibration.stand_ins import CountedRouting, TimedCpuExperts
from engine.calibration.timing import measure
from engine.events import Phase, Place
from engine.executor import ExpertExecutor
from engine.models.loader import LoadedModel, load_model
from engine.models.mixtral import MixtralModel
from engine.options import LoadOptions
from engine.placement import place_uniform
from kernels.cpu import CpuPool
from kernels.token_pass import run_chosen

LAYERS, TOP_K = 3, 2


@pytest.fixture
def parts(make_model: Callable[..., Any]) -> Iterator[LoadedModel]:
    loaded = load_model(make_model(num_hidden_layers=LAYERS).path, LoadOptions(threads=1, device="cpu"))
    yield loaded
    loaded.close()


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps of warm-up and three that count."""
    monkeypatch.setattr(probes, "_PROBE_SECONDS", 0.0)
    monkeypatch.setattr(probes, "_DECODE_SECONDS", 0.0)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """(block, rows of x, tokens) of every expert that the pool runs."""
    seen: list[tuple[int, int, int]] = []
    real = CpuPool.submit_experts

    def submit(self: CpuPool, x: Any, jobs: Any, shape: Any, out: Any) -> Any:
        seen.extend((job.block.data_ptr(), len(x), len(job.tokens)) for job in jobs)
        return real(self, x, jobs, shape, out)

    def chosen(pool: Any, blocks: Any, shape: Any, x: Any, ids: Any, weights: Any, out: Any) -> None:
        seen.extend((blocks[expert].data_ptr(), len(x), 1) for expert in ids[0].tolist())
        run_chosen(pool, blocks, shape, x, ids, weights, out)

    monkeypatch.setattr(CpuPool, "submit_experts", submit)
    monkeypatch.setattr("engine.executor.run_chosen", chosen)
    return seen


def ids(count: int) -> list[int]:
    return torch.randint(0, 61, (count,), generator=torch.Generator().manual_seed(5)).tolist()


def with_executor(model: MixtralModel, stand_in: object) -> MixtralModel:
    return MixtralModel(model.config, model.weights, cast(ExpertExecutor, stand_in), model.device)


def test_shuffled_experts_are_all_experts_in_a_repeatable_order() -> None:
    order = shuffled_experts(3, 4)
    assert sorted(order) == [(layer, expert) for layer in range(3) for expert in range(4)]
    assert order == shuffled_experts(3, 4)
    assert order != shuffled_experts(3, 4, seed=1)


def test_experts_without_memory_are_not_measured_unless_there_are_no_others(parts: LoadedModel) -> None:
    def places() -> set[int]:
        return {block.data_ptr() for block in expert_blocks(parts.bank)}

    everything = places()
    parts.bank.drop(1, 0)
    assert everything - places() == {parts.bank.block(1, 0).data_ptr()}
    for layer, expert in shuffled_experts(*parts.bank.held.shape):
        parts.bank.drop(layer, expert)
    assert places() == everything


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("tokens", [1, 7, 64])
def test_an_expert_is_timed_inside_decode_steps_with_the_asked_tokens(
    parts: LoadedModel, jobs: list[tuple[int, int, int]], tokens: int
) -> None:
    timing = DecodeProbes(parts.model, ids(1)).cpu_expert(tokens)
    assert timing.seconds > 0
    decode = jobs[LAYERS * TOP_K :]  # after the prompt of one token
    assert len(decode) == 5 * LAYERS * TOP_K
    assert {(rows, count) for _, rows, count in decode} == {(tokens, tokens)}
    assert len({block for block, _, _ in decode}) >= LAYERS * TOP_K


@pytest.mark.usefixtures("few_steps")
def test_the_parts_of_a_step_add_up_with_a_clock_that_only_experts_and_the_step_move(
    parts: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each layer's experts take 10 s, each router 1 s; the mean expert is then 5 s, everything else 3 s."""
    now = 0.0
    real_submit, real_forward = CpuPool.submit_experts, MixtralModel.forward

    def submit(*arguments: Any) -> Any:
        nonlocal now
        now += 10
        return real_submit(*arguments)

    def chosen(*arguments: Any) -> None:
        nonlocal now
        now += 10
        run_chosen(*arguments)

    def forward(*arguments: Any, **options: Any) -> Any:
        nonlocal now
        now += LAYERS
        return real_forward(*arguments, **options)

    monkeypatch.setattr(CpuPool, "submit_experts", submit)
    monkeypatch.setattr("engine.executor.run_chosen", chosen)
    monkeypatch.setattr(MixtralModel, "forward", forward)
    monkeypatch.setattr("time.perf_counter", lambda: now)
    timed = DecodeProbes(parts.model, ids(20))
    assert timed.cpu_expert(4).seconds == 10 / TOP_K
    assert timed.without_experts().seconds == LAYERS
    assert timed.whole().seconds == LAYERS + 10 * LAYERS
    # The same by the executor's own account, which a GPU's steps need.
    executor = parts.model.executor
    executor.account = TimeAccount(lambda: now)
    monkeypatch.setattr(probes, "measure", partial(measure, clock=lambda: now))
    assert timed.beside_experts().seconds == LAYERS
    assert executor.policy == "makespan"


@pytest.mark.usefixtures("few_steps")
def test_probes_do_not_count_as_the_models_own_work(parts: LoadedModel) -> None:
    parts.counters.reset()
    timed = DecodeProbes(parts.model, ids(20))
    timed.cpu_expert(2)
    timed.without_experts()
    assert parts.counters.snapshot().total(Place.CPU) == 0
    timed.whole()
    assert parts.counters.snapshot().total(Place.CPU, Phase.DECODE) == 5 * LAYERS * TOP_K


@pytest.mark.usefixtures("few_steps")
def test_decode_probes_fit_into_a_short_context(make_model: Callable[..., Any]) -> None:
    short = load_model(make_model(max_position_embeddings=12).path, LoadOptions(threads=1, device="cpu"))
    assert DecodeProbes(short.model, ids(60)).whole().seconds > 0
    short.close()


@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize("placed", [0, 4])
def test_a_timed_model_computes_what_the_model_computes(
    make_model: Callable[..., Any], copies: int, placed: int
) -> None:
    """Also with a second device; float32 sums in another order are the only difference."""
    placement = place_uniform(2, 4, placed)
    loaded = load_model(
        make_model().path,
        LoadOptions(threads=1, device="cpu"),
        placement,
        expert_device=torch.device("cpu"),
    )
    timed = TimedCpuExperts(loaded.model.executor, copies)
    for model in (loaded.model, with_executor(loaded.model, timed)):
        cache = model.new_cache(20)
        model.forward(torch.tensor(ids(9)), cache, phase=Phase.PREFILL)
        logits = model.forward(torch.tensor([3]), cache, phase=Phase.DECODE)
        assert logits is not None
        if model is loaded.model:
            expected = logits
    loaded.close()
    torch.testing.assert_close(logits, expected, rtol=2e-2, atol=2e-2)
    assert timed.seconds > 0


def test_counting_changes_nothing_and_counts_what_really_ran(parts: LoadedModel) -> None:
    tokens, model = ids(33), parts.model
    plain = model.forward(torch.tensor(tokens), model.new_cache(33), logits="all")
    counted = CountedRouting(model.executor)
    reader = with_executor(model, counted)
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
