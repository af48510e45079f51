"""`fiddler bench`: how fast this computer is at what the engine does, one sub-command a benchmark."""

from __future__ import annotations

from typing import Any

from engine.cli import bench_compare, bench_kernels, bench_model

_BENCHMARKS = (bench_kernels, bench_model, bench_compare)


def add_to(commands: Any) -> None:
    """Register the command and its benchmarks."""
    parser = commands.add_parser(
        "bench",
        help="measure this computer against its own limits",
        description="Times against what this computer's bandwidths allow. Nothing is needed but the program.",
    )
    benchmarks = parser.add_subparsers(title="benchmarks", required=True, metavar="BENCHMARK")
    for benchmark in _BENCHMARKS:
        benchmark.add_to(benchmarks)
