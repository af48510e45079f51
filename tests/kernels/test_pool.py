"""Experts run by a pool of threads: the same results every time, beside the caller, or an error."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import pytest
import torch

from kernels import reference
from kernels.cpu import CpuPool, PackedLinear
from tests.kernels.pools import SHAPE, run


@pytest.mark.parametrize("count", [1, 3, 16, 17, 60])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_results_are_the_same_every_time(work: Callable, count: int, threads: int) -> None:
    x, jobs = work(count)
    with CpuPool(threads) as pool:
        first = run(pool, x, jobs)
        for _ in range(20):
            assert torch.equal(run(pool, x, jobs), first)
    with CpuPool(threads) as other:
        assert torch.equal(run(other, x, jobs), first)


@pytest.mark.parametrize("count", [1, 40])
def test_submitted_work_runs_beside_the_caller(work: Callable, count: int) -> None:
    x, jobs = work(count)
    with CpuPool(2) as pool:
        alone = run(pool, x, jobs)
        out = torch.zeros_like(x)
        ticket = pool.submit_experts(x, jobs, SHAPE, out)
        deadline = time.monotonic() + 30
        while not torch.equal(out, alone):  # the worker finishes it although nobody waits
            assert time.monotonic() < deadline
            time.sleep(0.001)
        ticket.wait()
        assert torch.equal(out, alone)


def test_tickets_can_be_waited_for_in_any_order_and_twice(work: Callable) -> None:
    with CpuPool(2) as pool:
        pairs = []
        for seed in range(10):
            x, jobs = work(1 + 7 * (seed % 4), seed)
            out = torch.zeros_like(x)
            pairs.append((pool.submit_experts(x, jobs, SHAPE, out), out, run(pool, x, jobs)))
        for ticket, out, alone in reversed(pairs):
            ticket.wait()
            ticket.wait()
            assert torch.equal(out, alone)


def test_a_pool_of_one_thread_works_in_wait(work: Callable) -> None:
    x, jobs = work(5)
    with CpuPool(1) as pool:
        out = torch.zeros_like(x)
        ticket = pool.submit_experts(x, jobs, SHAPE, out)
        assert bool((out == 0).all())
        ticket.wait()
        assert torch.equal(out, run(pool, x, jobs))


def test_a_forgotten_ticket_keeps_its_tensors_until_the_work_is_done(work: Callable) -> None:
    with CpuPool(3) as pool:
        for seed in range(30):
            x, jobs = work(20, seed)
            pool.submit_experts(x, jobs, SHAPE, torch.zeros_like(x))
            del x, jobs
            gc.collect(0)  # a freed tensor's memory would be another's by the time a worker reads it
        x, jobs = work(20)
        exact = torch.zeros_like(x, dtype=torch.float64)
        reference.run_experts(x.double(), jobs, SHAPE, exact)
        assert (run(pool, x, jobs) - exact).norm() <= 0.01 * exact.norm()


def test_several_threads_share_a_pool_and_use_two(work: Callable) -> None:
    pools = [CpuPool(2), CpuPool(3)]
    problems: list[str] = []

    def use(index: int) -> None:
        pool = pools[index % 2]
        x, jobs = work(1 + 13 * (index % 3), index)
        exact = torch.zeros_like(x, dtype=torch.float64)
        reference.run_experts(x.double(), jobs, SHAPE, exact)
        for _ in range(20):
            out = run(pool, x, jobs)
            if float((out - exact).norm() / exact.norm()) > 0.01:
                problems.append(f"thread {index}")

    users = [threading.Thread(target=use, args=(i,)) for i in range(6)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    for pool in pools:
        pool.close()
    assert problems == []


def test_the_gil_is_released() -> None:
    """A Python thread makes progress while a native call of some hundred milliseconds runs."""
    weight = PackedLinear.from_weight(torch.ones(4096, 2048).bfloat16())
    x = torch.ones(1500, 2048)
    counted = [0]
    stop = threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    counter = threading.Thread(target=count)
    with CpuPool(1) as pool:
        counter.start()
        try:
            before = counted[0]
            pool.linear(x, weight)
            during = counted[0] - before
        finally:
            stop.set()
            counter.join()
    assert during > 5


@pytest.mark.parametrize("token", [-1, 3, 2**31 - 1])
def test_a_token_that_is_no_row_is_an_error(work: Callable, token: int) -> None:
    x, jobs = work(3)
    jobs[1].tokens[2] = token
    out = torch.zeros_like(x)
    with CpuPool(2) as pool, pytest.raises(IndexError, match=rf"{token} of job 1 .* 3 rows"):
        pool.run_experts(x, jobs, SHAPE, out)
    assert bool((out == 0).all())


@pytest.mark.parametrize("wrong", ["tokens", "weights", "count", "block", "x", "out"])
def test_refuses_tensors_it_cannot_read(work: Callable, wrong: str) -> None:
    x, jobs = work(3)
    out = torch.zeros_like(x)
    job = jobs[0]
    if wrong == "tokens":
        job.tokens = job.tokens.long()
    elif wrong == "weights":
        job.weights = job.weights.bfloat16()
    elif wrong == "count":
        job.weights = job.weights[:2]
    elif wrong == "block":
        job.block = job.block[:1024]
    elif wrong == "x":
        x = x.bfloat16()
    else:
        out = torch.zeros(4, SHAPE.hidden)
    with CpuPool(1) as pool, pytest.raises(ValueError, match=r"contiguous|same rows"):
        pool.run_experts(x, jobs, SHAPE, out)


@pytest.mark.parametrize("words", [0, 1, 7, 8, 33, 1000, 2**17, 3 * 2**17 + 5])
@pytest.mark.parametrize(
    ("four_streams", "prefetch_words"), [(False, 0), (False, 512), (True, 0), (True, 64)]
)
def test_reading_sees_every_word(words: int, four_streams: bool, prefetch_words: int) -> None:
    data = torch.randint(-(2**63), 2**63 - 1, (words,), generator=torch.Generator().manual_seed(words))
    expected = 0
    for word in data.tolist():
        expected ^= word % 2**64
    with CpuPool(3) as pool:
        assert pool.read(data, four_streams=four_streams, prefetch_words=prefetch_words) == expected
        assert pool.read(data) == expected
        with pytest.raises(ValueError, match="multiple of 8"):
            pool.read(torch.zeros(7, dtype=torch.uint8))
