"""A pool's threads: how many, how they sleep and wake up, and how they end, in forks, too."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernels.cpu import CpuPool, PackedLinear
from kernels.errors import PoolError
from tests.kernels.pools import SHAPE, run


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


def test_no_threads_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        CpuPool(0)


def test_the_default_leaves_a_core_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, threads in ((3, 3), (8, 7)):
        monkeypatch.setattr("kernels.threads.usable_cores", lambda cores=cores: cores)
        with CpuPool() as pool:
            assert pool.threads == threads
