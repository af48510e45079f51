from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
import torch

from kernels.cpu import CpuPool, PackedLinear
from kernels.threads import PIN_VARIABLE

TASKS = Path("/proc/self/task")
pytestmark = pytest.mark.skipif(
    not TASKS.exists(), reason="threads are pinned, and can be seen, on Linux only"
)


@pytest.fixture(autouse=True)
def _usual_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PIN_VARIABLE, raising=False)


def masks_of_new_threads(threads: int, pin: bool = True) -> list[set[int]]:
    """The affinity of each thread that a new pool starts, in the order they were started."""
    before = {int(entry.name) for entry in TASKS.iterdir()}
    with CpuPool(threads, pin=pin):
        started = sorted({int(entry.name) for entry in TASKS.iterdir()} - before)
        deadline = time.monotonic() + 30
        while not all(map(has_slept, started)) and time.monotonic() < deadline:
            time.sleep(0.005)
        return [os.sched_getaffinity(thread) for thread in started]


def has_slept(thread: int) -> bool:
    """Whether a thread has begun, in which it pins itself, and found no work yet."""
    status = (TASKS / str(thread) / "status").read_text()
    return re.search(r"^voluntary_ctxt_switches:\s+0$", status, re.MULTILINE) is None


def test_each_worker_has_a_core_and_the_caller_keeps_its_freedom(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.sched_getaffinity(0)
    cpus = tuple(sorted(allowed))
    monkeypatch.setattr("kernels.cpu.usable_cpus", lambda: (cpus[-1], *cpus))
    assert masks_of_new_threads(len(cpus) + 1) == [{cpu} for cpu in cpus]
    assert os.sched_getaffinity(0) == allowed


def test_more_threads_than_cores_wander(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.sched_getaffinity(0)
    first = min(allowed)
    monkeypatch.setattr("kernels.cpu.usable_cpus", lambda: (first, first))
    assert masks_of_new_threads(4) == [{first}, allowed, allowed]


@pytest.mark.parametrize(("value", "pin"), [("0", True), (None, False)])
def test_pinning_can_be_refused(monkeypatch: pytest.MonkeyPatch, value: str | None, pin: bool) -> None:
    if value is not None:
        monkeypatch.setenv(PIN_VARIABLE, value)
    allowed = os.sched_getaffinity(0)
    assert masks_of_new_threads(3, pin=pin) == [allowed, allowed]


def test_a_core_that_does_not_exist_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.cpu.usable_cpus", lambda: (0, 9999, 70000))
    weight = PackedLinear.from_weight(torch.ones(4096, 64).bfloat16())
    with CpuPool(3) as pool:
        assert bool((pool.linear(torch.ones(1, 64), weight) == 64).all())
    allowed = os.sched_getaffinity(0)
    assert masks_of_new_threads(3) == [allowed, allowed]
