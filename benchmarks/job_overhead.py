"""Times jobs that are hardly any work: what submitting one and waiting for it costs, per thread count.

    python benchmarks/job_overhead.py [--json] [--threads 1,2,4] [--no-pin] [--seconds 0.5]

Three jobs: an empty one (no experts); the smallest real one (one expert of 32 × 32, one token), which no
second thread can help with; and one with a piece of that size for every thread, which all are handed. Calls
follow each other at once, so workers spin and do not sleep. Microseconds, the best and the median of all.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

# Python puts this file's folder first on the path, where a file may have a package's name.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from engine.bench.random_block import random_block  # noqa: E402
from kernels.cpu import CpuPool, ExpertJob  # noqa: E402
from kernels.shape import ExpertShape  # noqa: E402
from kernels.threads import default_pool_threads, usable_cores  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", help="thread counts, comma separated (default: 1, 2, 4, … all cores)")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let the threads wander")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counts = [int(n) for n in options.threads.split(",")] if options.threads else usual_counts()
    report: dict[str, Any] = {
        "machine": {"cpu": platform.processor() or platform.machine(), "usable_cores": usable_cores()},
        "default_threads": default_pool_threads(),
        "pinned": options.pin,
        "results": [result for n in counts for result in measure(n, options.pin, options.seconds)],
    }
    if options.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{report['machine']['usable_cores']} usable cores, {report['default_threads']} threads by default")
    print("threads  job        best us  median us")
    for r in report["results"]:
        print(f"{r['threads']:7}  {r['job']:9} {r['best_us']:8.2f} {r['median_us']:10.2f}")


def usual_counts() -> list[int]:
    cores = usable_cores()
    powers = {2**i for i in range(10) if 2**i < cores}
    return sorted(powers | {default_pool_threads(), cores})


def measure(threads: int, pin: bool, seconds: float) -> list[dict[str, Any]]:
    small, wide = ExpertShape(32, 32), ExpertShape(32, 32 * threads)
    with CpuPool(threads, pin=pin) as pool:
        calls = {
            "empty": call_of(pool, small, []),
            "smallest": call_of(pool, small, [small]),
            "for all": call_of(pool, wide, [wide]),
        }
        results = []
        for job, call in calls.items():
            times = time_calls(call, seconds)
            best, median = min(times) * 1e6, statistics.median(times) * 1e6
            results.append({"threads": threads, "job": job, "best_us": best, "median_us": median})
    return results


def call_of(pool: CpuPool, shape: ExpertShape, experts: list[ExpertShape]) -> Callable[[], None]:
    x, out = torch.randn(1, shape.hidden), torch.zeros(1, shape.hidden)
    jobs = [
        ExpertJob(
            aligned(random_block(s, torch.Generator())), torch.zeros(1, dtype=torch.int32), torch.ones(1)
        )
        for s in experts
    ]
    return lambda: pool.run_experts(x, jobs, shape, out)


def aligned(block: torch.Tensor) -> torch.Tensor:
    room = torch.empty(block.numel() + 63, dtype=torch.uint8)
    start = -room.data_ptr() % 64
    return room[start : start + block.numel()].copy_(block)


def time_calls(call: Callable[[], None], seconds: float) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
