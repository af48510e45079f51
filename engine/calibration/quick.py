"""The costs of experts in some ten seconds, for benchmarks: the probes that a policy needs, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.calibration.cpu_experts import CpuExperts
from engine.calibration.gpu_probes import GpuProbes
from engine.calibration.probes import PROMPT_TOKENS
from engine.calibration.together import TOGETHER_COUNTS, TogetherProbes
from engine.latency import Curve, LatencyModel, Together
from engine.models.loader import LoadedModel

# Tokens per expert: decode, the knee of the CPU's times, and prompts of up to 1024 (2 of 8 experts each).
QUICK_COUNTS = (1, 4, 16, 64, 256)


def measure_costs(parts: LoadedModel, check: Callable[[], None] = lambda: None) -> LatencyModel:
    """Measure a loaded model's experts; it must be idle. Only the CPU's where there is no GPU.

    `check` is called between measurements and may raise to leave. What surrounds the experts in a decode step
    is not measured: `other_decode` is 0, and the costs are good for deciding, not for predicting whole steps.
    """
    cpu = CpuExperts(parts)

    def curve(one: Callable[[int], float], counts: Sequence[int]) -> Curve:
        points = []
        for tokens in counts:
            check()
            points.append((tokens, one(tokens)))
        return Curve.fit(points)

    if parts.model.executor.gpu is None:
        return LatencyModel(curve(lambda tokens: cpu.one(tokens).seconds, QUICK_COUNTS), other_decode=0.0)
    gpu = GpuProbes(parts)
    counts = [*QUICK_COUNTS, PROMPT_TOKENS] if gpu.has_room(PROMPT_TOKENS) else QUICK_COUNTS
    on_cpu = curve(lambda tokens: cpu.one(tokens).seconds, counts)
    on_gpu = curve(lambda tokens: gpu.expert(tokens).seconds, counts)
    check()
    transfer, copy_start, cpu_start = gpu.weight_copy(), gpu.copy_start(), cpu.start()
    both = TogetherProbes(cpu, gpu)
    slowdowns, copies = [], []
    for tokens in TOGETHER_COUNTS:
        check()
        alone = both.cpu_alone(tokens)
        slowdowns.append(both.cpu_together(tokens).seconds / alone.seconds)
        copies.append(both.copy_together(tokens).seconds)
    return LatencyModel(
        on_cpu,
        other_decode=0.0,
        gpu=on_gpu,
        transfer=transfer.seconds,
        together=Together(TOGETHER_COUNTS, tuple(slowdowns), tuple(copies)),
        cpu_start=cpu_start.seconds,
        copy_start=copy_start.seconds,
    )
