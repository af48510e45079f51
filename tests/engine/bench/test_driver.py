"""Driving a model: what counts as missing, the same routing for every policy, and soaking."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.bench.driver import Driver
from engine.bench.errors import BenchError
from engine.bench.soak import CONVERSATIONS, soak
from engine.errors import Cancelled
from engine.events import Phase, Place
from engine.progress import CancelToken, ignore_progress
from tests.engine.bench.subjects import mixed, tiny


def test_executions_are_counted_by_where_the_expert_lies() -> None:
    with mixed(tiny(), resident=12) as subject:
        driver = Driver(subject, CancelToken())
        driver.use("cpu")
        read = driver.read(20)
        work = driver.decode(10)
    assert len(read.seconds) == 1
    assert len(work.seconds) == 10
    assert min(*work.seconds, read.total) > 0
    assert work.resident_executions + work.missing_executions == 10 * 3 * 2  # tokens × layers × top-k
    assert work.resident_executions > 0 < work.missing_executions
    assert read.missing_experts == read.missing_executions <= 12  # one chunk: each expert runs once


@pytest.mark.parametrize("policy", ["cpu", "stream", "makespan", "paper"])
def test_every_policy_gets_the_same_routing(policy: str) -> None:
    def touched(chosen: str) -> tuple[np.ndarray, np.ndarray]:
        with mixed(tiny(), resident=6) as subject:
            driver = Driver(subject, CancelToken())
            driver.use(chosen)
            driver.read(9)
            before = subject.parts.counters.snapshot().counts[Phase.PREFILL].sum(axis=2)
            driver.decode(5)
            return before, subject.parts.counters.snapshot().counts[Phase.DECODE].sum(axis=2)

    for mine, reference in zip(touched(policy), touched("cpu"), strict=True):
        np.testing.assert_array_equal(mine, reference)


def test_streaming_really_streams() -> None:
    with mixed(tiny(), resident=6) as subject:
        driver = Driver(subject, CancelToken())
        driver.use("stream")
        driver.read(16)
        hits = subject.parts.counters.snapshot()
    assert hits.total(Place.STREAMED, Phase.PREFILL) > 0
    assert hits.total(Place.CPU) == 0


def test_a_conversation_begins_anew_with_each_prompt() -> None:
    with mixed(tiny(), resident=0) as subject:
        driver = Driver(subject, CancelToken())
        driver.read(30)
        driver.decode(5)
        assert driver.session.used == 35
        driver.read(12)
        assert driver.session.used == 12


def test_cancelling_ends_decoding() -> None:
    cancel = CancelToken()
    with mixed(tiny(), resident=0) as subject:
        driver = Driver(subject, cancel)
        driver.read(8)
        cancel.cancel()
        with pytest.raises(Cancelled):
            driver.decode(8)


def test_output_that_is_no_number_is_an_error() -> None:
    with mixed(tiny(), resident=0) as subject:
        subject.parts.model.weights.layers[0].router.fill_(torch.inf)
        subject.parts.model.weights.final_norm.fill_(torch.nan)
        with pytest.raises(BenchError, match="not finite"):
            Driver(subject, CancelToken()).read(4)


def test_soaking_fills_contexts_and_writes_every_token() -> None:
    with mixed(tiny(context=24), resident=6) as subject:
        driver = Driver(subject, CancelToken())
        figures = soak(subject, driver, 10 * CONVERSATIONS, ignore_progress, CancelToken())
    assert figures.tokens == 10 * CONVERSATIONS
    assert figures.full >= CONVERSATIONS // 4  # the longest prompts leave room for half of their tokens
    assert figures.gpu_growth == 0
    assert figures.ram_growth < 64 << 20
    assert figures.slowdown == pytest.approx(figures.last / figures.first)
