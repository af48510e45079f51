"""Times packed experts on every instruction set level, beside this machine's plain reading and beside torch.

    python benchmarks/kernels.py [--json] [--shape starter] [--isa avx2] [--tokens 1,4,16] [--threads N]

Experts take turns, so that caches do not serve their weights (as far as memory allows). Each figure is the
best of many calls within `--seconds`: on a shared machine the median measures the neighbours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import linear, silu

# Python puts this file's folder first on the path, where the file itself would be taken for the package.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa, available_isas, default_isa  # noqa: E402

SHAPES = {"starter": ExpertShape(576, 768), "mixtral": ExpertShape(4096, 14336)}
TURN_BYTES = 3 << 29  # 1.5 GiB of experts take turns
READ_BYTES = 1 << 30  # read in turns of READ_TURN
READ_TURN = 16 << 20  # about the time of a few experts: the best of short turns, as for the kernels


def best_seconds(call: Callable[[], object], budget: float) -> float:
    """The fastest of at least three calls, for `budget` seconds."""
    best = float("inf")
    end = time.perf_counter() + budget
    calls = 0
    while calls < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best


def machine(threads: int) -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":")[1].strip() if names else cpu
    return {"cpu": cpu, "threads": threads, "torch": torch.__version__}


def make_blocks(shape: ExpertShape) -> torch.Tensor:
    """Experts with random weights of a usual size (all-random bits would be mostly denormal or huge)."""
    count = max(2, TURN_BYTES // shape.nbytes)
    blocks = torch.empty(count * shape.nbytes + 4096, dtype=torch.uint8)
    start = -blocks.data_ptr() % 4096
    blocks = blocks[start : start + count * shape.nbytes]
    noise = (torch.randn(1 << 20) * 0.02).bfloat16().view(torch.uint8)
    for offset in range(0, len(blocks), len(noise)):
        part = blocks[offset : offset + len(noise)]
        part.copy_(noise[: len(part)])
    return blocks.view(count, shape.nbytes)


def time_kernel(pool: CpuPool, shape: ExpertShape, blocks: torch.Tensor, tokens: int, budget: float) -> float:
    x, out = torch.randn(tokens, shape.hidden), torch.zeros(tokens, shape.hidden)
    rows, weights = torch.arange(tokens, dtype=torch.int32), torch.full((tokens,), 1e-3)
    turns = itertools.cycle([[ExpertJob(block, rows, weights)] for block in blocks])
    return best_seconds(lambda: pool.run_experts(x, next(turns), shape, out), budget)


def time_torch(shape: ExpertShape, blocks: torch.Tensor, tokens: int, budget: float) -> float:
    """The same expert as three bf16 products of torch on plain matrices."""
    x = torch.randn(tokens, shape.hidden).bfloat16()
    size = shape.hidden * shape.intermediate
    turns = itertools.cycle(blocks.view(torch.bfloat16))

    def expert() -> torch.Tensor:
        flat = next(turns)
        w1 = flat[:size].view(shape.intermediate, shape.hidden)
        w3 = flat[size : 2 * size].view(shape.intermediate, shape.hidden)
        w2 = flat[2 * size : 3 * size].view(shape.hidden, shape.intermediate)
        return linear(silu(linear(x, w1)) * linear(x, w3), w2)

    return best_seconds(expert, budget)


def read_gbs(threads: int, budget: float) -> float:
    turns = itertools.cycle(torch.ones(READ_BYTES // 8, dtype=torch.int64).view(-1, READ_TURN // 8))
    with CpuPool(threads) as pool:
        return READ_TURN / best_seconds(lambda: pool.read(next(turns)), budget) / 1e9


def measure(
    names: list[str], tokens: list[int], isas: list[Isa], threads: int, budget: float
) -> dict[str, Any]:
    torch.set_num_threads(threads)
    report: dict[str, Any] = {"machine": machine(threads), "read_gbs": read_gbs(threads, max(budget, 1.0))}
    results = report["results"] = []
    for name in names:
        shape = SHAPES[name]
        blocks = make_blocks(shape)
        for count in tokens:
            torch_seconds = time_torch(shape, blocks, count, budget)
            for isa in isas:
                with CpuPool(threads, isa) as pool:
                    seconds = time_kernel(pool, shape, blocks, count, budget)
                gbs = shape.nbytes / seconds / 1e9
                results.append(
                    {
                        "shape": name,
                        "format": "bf16",
                        "isa": isa.value,
                        "tokens": count,
                        "ms": seconds * 1e3,
                        "gbs": gbs,
                        "percent_of_read": 100 * gbs / report["read_gbs"],
                        "tflops": 6 * shape.hidden * shape.intermediate * count / seconds / 1e12,
                        "torch_ms": torch_seconds * 1e3,
                    }
                )
    return report


def show(report: dict[str, Any]) -> None:
    about = report["machine"]
    print(f"{about['cpu']}, {about['threads']} threads, torch {about['torch']}")
    print(f"plain reading: {report['read_gbs']:.1f} GB/s")
    print("shape    isa          tokens  ms/expert    GB/s  % of read  GFLOP/s  torch ms  against torch")
    for r in report["results"]:
        print(
            f"{r['shape']:8} {r['isa']:12} {r['tokens']:6} {r['ms']:10.3f} {r['gbs']:7.1f} "
            f"{r['percent_of_read']:9.0f}% {r['tflops'] * 1e3:8.1f} {r['torch_ms']:9.3f} "
            f"{r['torch_ms'] / r['ms']:12.1f}×"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shape", choices=[*SHAPES, "all"], default="all")
    parser.add_argument("--tokens", default="1,2,4,8,16,64", help="tokens per expert, comma separated")
    parser.add_argument("--isa", default=",".join(available_isas()), help="levels, comma separated")
    parser.add_argument("--threads", type=int, help="threads of the pool and of torch (default: the pool's)")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with CpuPool(options.threads) as pool:
        threads = pool.threads
    names = list(SHAPES) if options.shape == "all" else [options.shape]
    isas = [isa for isa in map(Isa, options.isa.split(",")) if isa <= default_isa()]
    tokens = [int(count) for count in options.tokens.split(",")]
    report = measure(names, tokens, isas, threads, options.seconds)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # torch's idle threads must not disturb the pool's
    main()
