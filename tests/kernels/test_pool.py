from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernels import reference
from kernels.cpu import CpuPool, ExpertJob, ExpertShape, PackedLinear
from kernels.errors import PoolError

SHAPE = ExpertShape(96, 160)


@pytest.fixture
def work(random_expert: Callable, random_job: Callable) -> Callable[..., tuple[Tensor, list[ExpertJob]]]:
    """Make x and jobs for three experts with `count` tokens each."""

    def make(count: int, seed: int = 0) -> tuple[Tensor, list[ExpertJob]]:
        x = torch.randn(count, SHAPE.hidden, generator=torch.Generator().manual_seed(seed))
        jobs = [random_job(random_expert(SHAPE, seed + e)[0], count, count, seed + e) for e in range(3)]
        return x, jobs

    return make


def run(pool: CpuPool, x: Tensor, jobs: list[ExpertJob]) -> Tensor:
    out = torch.zeros_like(x)
    pool.run_experts(x, jobs, SHAPE, out)
    return out


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


def test_closing_is_final_and_can_be_repeated(work: Callable) -> None:
    x, jobs = work(2)
    pool = CpuPool(2)
    out = torch.zeros_like(x)
    alone = run(pool, x, jobs)
    ticket = pool.submit_experts(x, jobs, SHAPE, out)
    assert not pool.closed
    pool.close()
    pool.close()
    assert pool.closed
    ticket.wait()  # what was submitted before is finished
    assert torch.equal(out, alone)
    weight = PackedLinear.from_weight(torch.ones(4, SHAPE.hidden).bfloat16())
    for use in (lambda: run(pool, x, jobs), lambda: pool.linear(x, weight)):
        with pytest.raises(PoolError, match="closed"):
            use()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="native threads are counted in /proc")
def test_threads_end_with_the_pool() -> None:
    task_folder = Path("/proc/self/task")
    before = len(list(task_folder.iterdir()))
    pool = CpuPool(6)
    assert len(list(task_folder.iterdir())) == before + 5
    del pool  # without close: collecting the pool is enough
    gc.collect()
    assert len(list(task_folder.iterdir())) == before


def test_sleeping_workers_wake_up(work: Callable) -> None:
    x, jobs = work(1)
    with CpuPool(4) as pool:
        first = run(pool, x, jobs)
        for _ in range(5):
            time.sleep(0.005)  # beyond the time that workers spin
            assert torch.equal(run(pool, x, jobs), first)


def test_idle_workers_sleep() -> None:
    with CpuPool(4) as pool:
        pool.linear(torch.ones(1, 64), PackedLinear.from_weight(torch.ones(4096, 64).bfloat16()))
        time.sleep(0.05)
        before = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - before < 0.1  # three spinning workers would use 1.5 s


FORK = """
import os, time, torch
from kernels.cpu import CpuPool, PackedLinear
from kernels.errors import PoolError
weight = PackedLinear.from_weight(torch.ones(4096, 64).bfloat16())
x = torch.ones(1, 64)
pool = CpuPool(3)
pool.linear(x, weight)
time.sleep(0.02)  # the workers sleep
child = os.fork()
if child == 0:
    try:
        pool.linear(x, weight)
    except PoolError as error:
        ok = "fork" in str(error)
    else:
        ok = False
    pool.close()  # must neither hang nor fail
    del pool
    with CpuPool(2) as own:
        ok = ok and bool((own.linear(x, weight) == 64).all())
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert bool((pool.linear(x, weight) == 64).all())
"""


FORK_AT_WORK = """
import os, time, torch
from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa
shape = ExpertShape(65536, 32)  # one panel: one worker is busy, the other sleeps until the next phase
block = torch.zeros(shape.nbytes + 64, dtype=torch.uint8)
block = block[-block.data_ptr() % 64 :][: shape.nbytes]
x, out = torch.zeros(256, shape.hidden), torch.zeros(256, shape.hidden)
pool = CpuPool(3, Isa.PORTABLE)
ticket = pool.submit_experts(x, [ExpertJob(block, torch.arange(256).int(), torch.ones(256))], shape, out)
time.sleep(0.05)
child = os.fork()
if child == 0:
    pool.close()
    del ticket, pool
    os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
ticket.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("code", [FORK, FORK_AT_WORK], ids=["idle", "at work"])
def test_a_fork_refuses_the_pool_and_can_make_its_own(code: str) -> None:
    done = subprocess.run(
        # Python 3.12 warns of every fork beside threads, which is what is tried here.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_open_pool_does_not_disturb_the_end_of_the_program() -> None:
    code = (
        "import torch; from kernels.cpu import CpuPool, PackedLinear; p = CpuPool(4);"
        "p.linear(torch.ones(1, 64), PackedLinear.from_weight(torch.ones(4096, 64).bfloat16()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


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


def test_no_threads_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        CpuPool(0)


def test_the_default_leaves_a_core_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, threads in ((3, 3), (8, 7)):
        monkeypatch.setattr("kernels.threads.usable_cores", lambda cores=cores: cores)
        with CpuPool() as pool:
            assert pool.threads == threads
