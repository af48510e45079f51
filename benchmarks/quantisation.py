"""What quantising costs in accuracy: weights' SNR and the error of an expert's output, beside min-max.

    python benchmarks/quantisation.py [--json] [--hidden 1024] [--intermediate 1792]

Random weights of three kinds: normal; heavy-tailed (Student's t, 5 degrees of freedom); and heavy-tailed with
rows of different sizes, as trained models have. Min-max is the usual way to choose a group's scale and
minimum, in the same formats. The quantiser's speed is that of one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, silu

# Python puts this file's folder first on the path; the packages are beside it.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from kernels.formats import WeightFormat  # noqa: E402
from kernels.pack import quantise  # noqa: E402

TOKENS = 64


def normal(rows: int, cols: int, g: torch.Generator) -> Tensor:
    return torch.randn(rows, cols, generator=g)


def heavy_tailed(rows: int, cols: int, g: torch.Generator) -> Tensor:
    chi = sum(torch.randn(rows, cols, generator=g).square() for _ in range(5))
    return torch.randn(rows, cols, generator=g) / (chi / 5).sqrt()


def varying_rows(rows: int, cols: int, g: torch.Generator) -> Tensor:
    return heavy_tailed(rows, cols, g) * torch.randn(rows, 1, generator=g).mul(0.5).exp()


KINDS = {"normal": normal, "heavy-tailed": heavy_tailed, "varying rows": varying_rows}


def grouped(weight: Tensor, size: int) -> Tensor:
    """[rows, groups, size], the last group filled up with its last weight."""
    return pad(weight, (0, -weight.shape[1] % size), mode="replicate").unflatten(1, (-1, size))


def min_max_int8(weight: Tensor) -> Tensor:
    groups = grouped(weight, 32)
    scales = (groups.abs().amax(2, keepdim=True) / 127).half().float()
    return (groups / scales).round().clamp(-128, 127).mul(scales).flatten(1)[:, : weight.shape[1]]


def min_max_int4(weight: Tensor) -> Tensor:
    blocks = grouped(weight, 256).unflatten(2, (8, 32))
    low = blocks.amin(3, keepdim=True).clamp_max(0)
    scales = (blocks.amax(3, keepdim=True) - low) / 15
    d = (scales.amax(2, keepdim=True) / 255).half().float()
    e = (-low.amin(2, keepdim=True) / 255).half().float()
    scales, low = (scales / d).round() * d, (low / e).round() * e
    codes = ((blocks - low) / scales).round().clamp(0, 15)
    return (codes * scales + low).flatten(1)[:, : weight.shape[1]]


def ours(format: WeightFormat) -> Callable[[Tensor], Tensor]:
    return lambda weight: quantise(weight.bfloat16(), format).dequantise()


METHODS: dict[str, Callable[[Tensor], Tensor]] = {
    "int8 min-max": min_max_int8,
    "int8": ours(WeightFormat.INT8),
    "int4 min-max": min_max_int4,
    "int4": ours(WeightFormat.INT4),
}


def output(x: Tensor, weights: list[Tensor]) -> Tensor:
    w1, w3, w2 = (weight.double() for weight in weights)
    return (silu(x @ w1.T) * (x @ w3.T)) @ w2.T


def measure(kind: str, hidden: int, intermediate: int) -> list[dict[str, Any]]:
    g = torch.Generator().manual_seed(0)
    sizes = ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))
    weights = [(KINDS[kind](rows, cols, g) / cols**0.5).bfloat16().float() for rows, cols in sizes]
    x = torch.randn(TOKENS, hidden, generator=g).double()
    reference = output(x, weights)
    results = []
    for name, method in METHODS.items():
        quantised = [method(weight) for weight in weights]
        noise = sum(float((a - b).double().square().sum()) for a, b in zip(quantised, weights, strict=True))
        signal = sum(float(weight.double().square().sum()) for weight in weights)
        error = float((output(x, quantised) - reference).norm() / reference.norm())
        snr = 10 * math.log10(signal / noise)
        results.append(
            {"weights": kind, "method": name, "snr_db": round(snr, 2), "output_error": round(error, 5)}
        )
    return results


def speed(format: WeightFormat) -> float:
    """Weights per second of one thread, the best of some runs."""
    weight = torch.randn(1024, 4096).bfloat16()
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        quantise(weight, format)
        best = min(best, time.perf_counter() - start)
    return weight.numel() / best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--intermediate", type=int, default=1792)
    arguments = parser.parse_args()
    results = [line for kind in KINDS for line in measure(kind, arguments.hidden, arguments.intermediate)]
    speeds = {format.value: round(speed(format) / 1e6) for format in (WeightFormat.INT8, WeightFormat.INT4)}
    if arguments.json:
        print(json.dumps({"results": results, "million_weights_per_second": speeds}))
        return 0
    print(f"{'weights':14}{'method':16}{'SNR':>9}{'output error':>15}")
    for line in results:
        snr, error = f"{line['snr_db']:.2f} dB", f"{line['output_error']:.2%}"
        print(f"{line['weights']:14}{line['method']:16}{snr:>9}{error:>15}")
    print(", ".join(f"{name}: {rate} M weights/s" for name, rate in speeds.items()) + " on one thread")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
