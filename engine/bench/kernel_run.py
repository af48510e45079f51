"""Measures what `fiddler bench kernels` reports: reading, torch, then every format on every level, tuned."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from engine import arena
from engine.bench.kernel_report import EIGHT_BIT, EXACT, Figure, KernelReport, LeftOut
from engine.bench.kernel_request import KernelRequest
from engine.bench.random_block import fill_experts
from engine.bench.reading import read_gbs
from engine.bench.rotation import Rotation, last_level_cache, plan_rotation, wanted_bytes
from engine.bench.timing import Times, expected_seconds, time_calls
from engine.bench.torch_expert import torch_call, torch_threads
from engine.errors import HardwareError, MemoryFullError
from engine.hardware.cpu import detect_cpu
from engine.hardware.memory import detect_memory
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from kernels.cgroup import read_limits
from kernels.cpu import CpuPool, ExpertJob, Isa
from kernels.errors import KernelsError
from kernels.shape import ExpertShape
from kernels.threads import default_pool_threads, usable_cores
from kernels.tuning import Tuning, Way
from kernels.tuning_probe import measure_tuning

LONGEST_CALL = 2.0  # seconds that a call may take to be measured
_READING = 2  # reading takes so many times as long as a figure: all figures are held against it
_SEED = 20
_ROUTING_WEIGHT = 1e-3  # outputs of thousands of calls are added up


class KernelRun:
    """One run of a request; `report` holds what it has measured so far.

    `wanted`: bytes of experts that take turns (None: by this machine's caches). `longest_call`: seconds that
    a call may take to be measured. Raises HardwareError if the system does not give the threads.
    """

    def __init__(
        self,
        request: KernelRequest,
        *,
        progress: ProgressCallback = ignore_progress,
        cancel: CancelToken | None = None,
        wanted: int | None = None,
        longest_call: float = LONGEST_CALL,
    ) -> None:
        self._request = request
        self._progress = progress
        self._cancel = cancel or CancelToken()
        self._longest_call = longest_call
        self._threads = request.threads or default_pool_threads()
        self._cores = request.threads or usable_cores()  # which read, and which torch uses
        cache = last_level_cache()
        self._wanted = wanted if wanted is not None else wanted_bytes(cache)
        self._generator = torch.Generator().manual_seed(_SEED)
        machine = {
            "cpu": detect_cpu(read_limits()).name,
            "threads": self._threads,
            "reading_threads": self._cores,
            "torch": torch.__version__,
            "cache_bytes": cache,
        }
        self.report = KernelReport(machine, request.hidden, request.intermediate, request.experts)

    def measure(self) -> None:
        """Fill the report. Raises MemoryFullError, HardwareError, and Cancelled between two calls."""
        with torch_threads(self._cores):
            self._measure()

    def _measure(self) -> None:
        request = self._request
        plain = ExpertShape(request.hidden, request.intermediate)
        shapes = [ExpertShape(request.hidden, request.intermediate, name) for name in request.formats]
        available = detect_memory(read_limits()).available
        rotations = {shape: self._rotation(shape, available) for shape in shapes}
        with_torch = plain in rotations or self._add_plain(rotations, plain, available)
        memory = arena.allocate(max(rotation.total for rotation in rotations.values()))
        filled = plain if with_torch else shapes[0]
        blocks = self._fill(memory, filled, rotations[filled])
        self._read(memory[: rotations[filled].total])
        if with_torch:
            self._measure_torch(blocks)
        for shape in shapes:
            rotation = rotations[shape]
            if shape != filled:
                blocks, filled = self._fill(memory, shape, rotation), shape
            self.report.rotations[shape.format] = {
                "count": rotation.count,
                "bytes": rotation.nbytes,
                "short": rotation.short,
            }
            for isa in request.isas:
                self._measure_isa(shape, isa, blocks)
                # Often: other programs disturb it as they do the figures.
                self._read(memory[: rotation.total])
        self.report.complete = True

    def _rotation(self, shape: ExpertShape, available: int) -> Rotation:
        return plan_rotation(shape.nbytes, self._request.experts, self._wanted, available)

    def _add_plain(self, rotations: dict[ExpertShape, Rotation], plain: ExpertShape, available: int) -> bool:
        """Add the experts in bf16 that only torch needs; without the memory for them torch is left out."""
        try:
            rotations[plain] = self._rotation(plain, available)
        except MemoryFullError:
            return False
        return True

    def _fill(self, memory: Tensor, shape: ExpertShape, rotation: Rotation) -> list[Tensor]:
        def before_each(done: int) -> None:
            self._cancel.raise_if_cancelled()
            self._progress(Progress(f"Making experts in {shape.format}", done, rotation.count, "experts"))

        return fill_experts(memory, shape, rotation.count, self._generator, before_each)

    def _read(self, memory: Tensor) -> None:
        """Read where experts were written: pages that nobody wrote are all one page, which a cache serves."""
        self._progress(Progress("Reading memory"))
        with _pool(self._cores, None) as pool:
            seconds = _READING * self._request.seconds
            self.report.reads.append(read_gbs(pool, memory, seconds, self._cancel))

    def _measure_torch(self, blocks: list[Tensor]) -> None:
        request = self._request
        seconds: dict[int, float] = {}
        for done, tokens in enumerate(request.tokens):
            self._progress(Progress("Measuring torch", done, len(request.tokens), "figures"))
            if expected_seconds(seconds, tokens) > self._longest_call:
                continue
            call = torch_call(blocks, request.hidden, request.intermediate, tokens, request.experts)
            seconds[tokens] = time_calls(call, request.seconds, self._cancel).best
            self.report.torch[tokens] = seconds[tokens] / request.experts

    def _measure_isa(self, shape: ExpertShape, isa: Isa, blocks: list[Tensor]) -> None:
        request = self._request
        seconds: dict[int, float] = {}
        with _pool(self._threads, isa) as pool:
            pool.tuning = self._tune(pool, shape, blocks)
            for done, tokens in enumerate(request.tokens):
                what = f"Measuring {shape.format} with {isa}"
                self._progress(Progress(what, done, len(request.tokens), "figures"))
                expected = expected_seconds(seconds, tokens)
                if expected > self._longest_call:
                    self.report.left_out.append(LeftOut(shape.format, isa, tokens, expected))
                    continue
                times = self._time_kernel(pool, shape, blocks, tokens)
                seconds[tokens] = times.best
                per_expert = times.over(request.experts)
                activations = _activations(pool, shape, tokens)
                self.report.figures.append(
                    Figure(shape.format, isa, tokens, shape.nbytes, per_expert, activations)
                )

    def _tune(self, pool: CpuPool, shape: ExpertShape, blocks: list[Tensor]) -> Tuning:
        """The kernels that a calibration would choose here. Raises Cancelled between two rounds."""
        self._progress(Progress(f"Choosing kernels for {shape.format} with {pool.isa}"))
        return measure_tuning(
            pool,
            shape,
            blocks,
            experts=self._request.experts,
            eight_bit=not self._request.exact_activations,
            most_tokens=self._request.tokens[-1],
            before_round=lambda _: self._cancel.raise_if_cancelled(),
        ).tuning

    def _time_kernel(self, pool: CpuPool, shape: ExpertShape, blocks: list[Tensor], tokens: int) -> Times:
        x, out = torch.randn(tokens, shape.hidden), torch.zeros(tokens, shape.hidden)
        rows, weights = torch.arange(tokens, dtype=torch.int32), torch.full((tokens,), _ROUTING_WEIGHT)
        jobs = [ExpertJob(block, rows, weights) for block in blocks]
        experts = self._request.experts
        turns = itertools.cycle([jobs[start : start + experts] for start in range(0, len(jobs), experts)])
        return time_calls(
            lambda: pool.run_experts(x, next(turns), shape, out), self._request.seconds, self._cancel
        )


def _activations(pool: CpuPool, shape: ExpertShape, tokens: int) -> str:
    rounded = pool.ways(shape.format).eight_bit and (
        pool.tuning.formats[shape.format].way(tokens) is Way.EIGHT_BIT
    )
    return EIGHT_BIT if rounded else EXACT


@contextmanager
def _pool(threads: int, isa: Isa | None) -> Iterator[CpuPool]:
    """A pool for a `with`; its errors become the engine's."""
    try:
        pool = CpuPool(threads, isa)
    except KernelsError as error:
        raise HardwareError(error.what, action=error.action) from error
    with pool:
        yield pool
