"""Cancelling a ticket. What exactly is skipped is checked in stress_pool.h, where items can be held up."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernels.cpu import CpuPool, ExpertJob, ExpertShape

SMALL = ExpertShape(96, 160)
LARGE = ExpertShape(1024, 2048)
Work = Callable[[ExpertShape, int], tuple[Tensor, list[ExpertJob]]]


@pytest.fixture
def work(random_expert: Callable, random_job: Callable) -> Work:
    """Make x and the jobs of two experts with `count` tokens each."""

    def make(shape: ExpertShape, count: int) -> tuple[Tensor, list[ExpertJob]]:
        x = torch.randn(count, shape.hidden, generator=torch.Generator().manual_seed(count))
        return x, [random_job(random_expert(shape, seed)[0], count, count, seed) for seed in range(2)]

    return make


def assert_usable(pool: CpuPool, work: Work) -> None:
    """The pool computes the same as one that never saw a cancelled ticket."""
    x, jobs = work(SMALL, 5)
    ours, fresh = torch.zeros_like(x), torch.zeros_like(x)
    pool.run_experts(x, jobs, SMALL, ours)
    with CpuPool(pool.threads, pool.isa) as other:
        other.run_experts(x, jobs, SMALL, fresh)
    assert torch.equal(ours, fresh)
    assert float(ours.norm()) > 0


def test_nothing_runs_after_cancelling_before_the_start(work: Work) -> None:
    x, jobs = work(SMALL, 5)
    out = torch.zeros_like(x)
    with CpuPool(1) as pool:  # begins in wait()
        ticket = pool.submit_experts(x, jobs, SMALL, out)
        ticket.cancel()
        ticket.cancel()
        ticket.wait()
        assert bool((out == 0).all())
        assert_usable(pool, work)


@pytest.mark.parametrize("threads", [2, 4])
# Divided by panels, and by rows; either takes a tenth of a second, so that cancelling comes before the end.
@pytest.mark.parametrize(("count", "repeats"), [(4, 200), (200, 10)])
def test_cancelling_in_the_middle_ends_early(work: Work, threads: int, count: int, repeats: int) -> None:
    x, jobs = work(LARGE, count)
    jobs *= repeats
    with CpuPool(threads) as pool:
        complete = torch.zeros_like(x)
        pool.run_experts(x, jobs, LARGE, complete)  # the outputs are added at its end
        out = torch.zeros_like(x)
        ticket = pool.submit_experts(x, jobs, LARGE, out)
        ticket.cancel()
        ticket.wait()
        assert not torch.equal(out, complete)
        assert_usable(pool, work)


def test_cancelling_after_the_end_changes_nothing(work: Work) -> None:
    x, jobs = work(SMALL, 5)
    out, alone = torch.zeros_like(x), torch.zeros_like(x)
    with CpuPool(2) as pool:
        pool.run_experts(x, jobs, SMALL, alone)
        ticket = pool.submit_experts(x, jobs, SMALL, out)
        ticket.wait()
        ticket.cancel()
        ticket.wait()
        assert torch.equal(out, alone)
        assert_usable(pool, work)


def test_another_thread_may_cancel_what_one_waits_for(work: Work) -> None:
    x, jobs = work(LARGE, 4)
    out = torch.zeros_like(x)
    with CpuPool(2) as pool:
        ticket = pool.submit_experts(x, jobs * 200, LARGE, out)  # 5 GB to read
        waiter = threading.Thread(target=ticket.wait)
        waiter.start()
        ticket.cancel()
        waiter.join()
        assert bool((out == 0).all())  # the outputs would have been added at the end
        ticket.cancel()
        ticket.wait()
        assert_usable(pool, work)


@pytest.mark.parametrize("wait", [True, False])
def test_a_pool_closes_over_cancelled_and_unfinished_tickets(work: Work, wait: bool) -> None:
    x, jobs = work(SMALL, 20)
    alone = torch.zeros_like(x)
    pool = CpuPool(3)
    pool.run_experts(x, jobs, SMALL, alone)
    pairs = []
    for index in range(30):
        out = torch.zeros_like(x)
        pairs.append((pool.submit_experts(x, jobs, SMALL, out), out))
        if index % 3 == 0:
            pairs[-1][0].cancel()
    pool.close()
    if wait:
        for ticket, _ in pairs:
            ticket.wait()
        assert all(torch.equal(out, alone) for index, (_, out) in enumerate(pairs) if index % 3)
    del pairs
    gc.collect()
