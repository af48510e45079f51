"""Times expert calls alone and beside a busy thread of another process: what that costs the pool.

    python benchmarks/foreign_thread.py [--json] [--threads N] [--pin | --no-pin] [--rounds 5] [--seconds 1]

A call is one bf16 expert of Mixtral's shape with one token; several experts take turns, so that no cache
serves them. The busy thread computes and is pinned nowhere. Times with and without it are taken in turn, so
that other programs disturb both alike. The ratio is of the mean times: a few long calls count as well.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

# Python puts this file's folder first on the path, where a file may have a package's name.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from engine.bench.random_block import random_block  # noqa: E402
from kernels.cpu import CpuPool, ExpertJob  # noqa: E402
from kernels.shape import ExpertShape  # noqa: E402
from kernels.threads import usable_cores  # noqa: E402

SHAPE = ExpertShape(4096, 14336)
_BUSY = "print('busy', flush=True)\nwhile True: pass"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, help="threads of the pool (default: the pool's)")
    parser.add_argument(
        "--pin", action=argparse.BooleanOptionalAction, default=True, help="the pool's threads"
    )
    parser.add_argument("--experts", type=int, default=4, help="that take turns, 352 MB each")
    parser.add_argument("--rounds", type=int, default=5, help="of a time without and a time with the thread")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with CpuPool(options.threads, pin=options.pin) as pool:
        call = expert_calls(pool, options.experts)
        alone: list[float] = []
        beside: list[float] = []
        time_calls(call, options.seconds)  # touches all memory once
        for _ in range(options.rounds):
            alone += time_calls(call, options.seconds)
            with busy_thread():
                beside += time_calls(call, options.seconds)
        report: dict[str, Any] = {
            "machine": {"cpu": platform.processor() or platform.machine(), "usable_cores": usable_cores()},
            "threads": pool.threads,
            "pinned": options.pin,
            "alone_ms": summary(alone),
            "beside_ms": summary(beside),
            "ratio": statistics.mean(beside) / statistics.mean(alone),
            "median_ratio": statistics.median(beside) / statistics.median(alone),
        }
    if options.json:
        print(json.dumps(report, indent=2))
        return
    print(
        f"{usable_cores()} usable cores, {report['threads']} threads, {'' if options.pin else 'not '}pinned"
    )
    print("                  calls   best ms  median ms  mean ms")
    for name, key in (("alone", "alone_ms"), ("beside the thread", "beside_ms")):
        s = report[key]
        print(f"{name:17} {s['calls']:5} {s['best']:9.3f} {s['median']:10.3f} {s['mean']:8.3f}")
    print(f"with / without: {report['ratio']:.3f} (medians {report['median_ratio']:.3f})")


def expert_calls(pool: CpuPool, experts: int) -> Callable[[], None]:
    room = torch.empty(experts * SHAPE.nbytes + 4096, dtype=torch.uint8)
    start = -room.data_ptr() % 4096
    blocks = room[start : start + experts * SHAPE.nbytes].view(experts, SHAPE.nbytes)
    block = random_block(SHAPE, torch.Generator().manual_seed(1))
    for copy in blocks:
        copy.copy_(block)
    x, out = torch.randn(1, SHAPE.hidden), torch.zeros(1, SHAPE.hidden)
    token, weight = torch.zeros(1, dtype=torch.int32), torch.full((1,), 1e-3)
    turns = itertools.cycle([[ExpertJob(block, token, weight)] for block in blocks])
    return lambda: pool.run_experts(x, next(turns), SHAPE, out)


def time_calls(call: Callable[[], None], seconds: float) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


@contextmanager
def busy_thread() -> Iterator[None]:
    """One thread of another process that never stops computing."""
    with subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.2)  # time for the system to give it a core
            yield
        finally:
            process.kill()


def summary(times: list[float]) -> dict[str, float]:
    """Milliseconds."""
    return {
        "calls": len(times),
        "best": min(times) * 1e3,
        "median": statistics.median(times) * 1e3,
        "mean": statistics.mean(times) * 1e3,
    }


if __name__ == "__main__":
    main()
