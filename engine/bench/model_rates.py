"""Bandwidths of this machine, measured with the very experts that a model is about to use."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import torch

from engine.bench.rates import Rates
from engine.bench.reading import read_gbs
from engine.experts.bank import ExpertBank, all_experts
from engine.models.loader import LoadedModel
from engine.progress import CancelToken
from kernels.bandwidth import measure_read_gbs
from kernels.cpu import ExpertJob

_SECONDS = 1.0  # of each measurement
_AT_ONCE = 2  # experts in one call, as a token of Mixtral has them in a layer
_PIECE = 32 << 20  # bytes of one copy: enough for full speed on PCIe 5
_AHEAD = 24  # copies on their way: they last longer (14 ms) than a call of the kernels beside them (7 ms)
_GPU_READ = 2 << 30  # bytes read at once on the GPU: many times its cache


def measure_rates(
    parts: LoadedModel, cancel: CancelToken, gpu: float | None, seconds: float = _SECONDS
) -> Rates:
    """Measure all that the machine has. The model must be idle. Raises Cancelled between measurements.

    `gpu`: what `gpu_read_rate` found before the model took the GPU's memory.
    """
    if not parts.bank.held.any():  # all experts are on the GPU, and only there
        read = 1e9 * measure_read_gbs(parts.pool, seconds)
        return Rates(read, read, gpu=gpu)
    read = 1e9 * read_gbs(parts.pool, held_memory(parts.bank), seconds, cancel)
    reader = _CpuReader(parts)
    reader.run(min(0.1, seconds))  # wakes the threads
    cpu = reader.run(seconds)
    device = parts.model.device
    if device.type != "cuda":
        return Rates(read, cpu)
    cancel.raise_if_cancelled()
    copier = _Copier(parts)
    copier.run(0.1, None)
    copy, _ = copier.run(seconds, None)
    cancel.raise_if_cancelled()
    copy_together, cpu_together = copier.run(seconds, reader)
    copier.close()
    return Rates(read, cpu, copy, cpu_together, copy_together, gpu)


class _CpuReader:
    """One token through one pair of experts after the other, all over the arena."""

    def __init__(self, parts: LoadedModel) -> None:
        config, self._pool, self._shape = parts.info.config, parts.pool, parts.bank.shape
        rows, weight = torch.zeros(1, dtype=torch.int32), torch.full((1,), 1e-3)
        held = [item for item in all_experts(config) if parts.bank.held[item]]  # others have no memory
        jobs = [ExpertJob(parts.bank.block(*item), rows, weight) for item in held]
        pairs = [jobs[first : first + _AT_ONCE] for first in range(0, len(jobs), _AT_ONCE)]
        self._calls: Iterator[list[ExpertJob]] = itertools.cycle(pairs)
        self._x, self._out = torch.randn(1, config.hidden_size), torch.zeros(1, config.hidden_size)

    def one(self) -> int:
        """Run the next call; its bytes."""
        jobs = next(self._calls)
        self._pool.run_experts(self._x, jobs, self._shape, self._out)
        return len(jobs) * self._shape.nbytes

    def run(self, seconds: float) -> float:
        """Bytes per second over about `seconds`."""
        done, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            done += self.one()
        return done / (time.perf_counter() - begin)


class _Copier:
    """Copies pieces of the arena to a slot of the GPU; from a pinned buffer where the arena is not pinned."""

    def __init__(self, parts: LoadedModel) -> None:
        gpu, bank = parts.residents, parts.bank
        if gpu is None:
            raise ValueError("the model was loaded without a GPU")
        self._gpu = gpu
        self._target = gpu.data[-1]  # the last slot: no memory beside the budget is taken
        pieces = [
            piece
            for item in all_experts(bank.config)
            if bank.held[item] and bank.pinned(*item)
            for piece in self._pieces_of(bank.block(*item))
        ]
        if not pieces:
            pieces = self._pieces_of(torch.empty(4 * _PIECE, dtype=torch.uint8, pin_memory=True))
        self._pieces = itertools.cycle(pieces)
        self._stream = torch.cuda.Stream(gpu.device)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Nobody must take what was copied for an expert."""
        self._stream.synchronize()
        self._gpu.empty_slots()

    def run(self, seconds: float, reader: _CpuReader | None) -> tuple[float, float]:
        """Bytes per second copied, and read by the CPU meanwhile, over about `seconds`."""
        self._stream.synchronize()
        events: list[torch.cuda.Event] = []
        copied = read = 0
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            events = [event for event in events if not event.query()]  # type: ignore[no-untyped-call]
            while len(events) < _AHEAD:
                piece = next(self._pieces)
                events.append(self._enqueue(piece))
                copied += len(piece)
            if reader is None:
                events[0].synchronize()
            else:
                read += reader.one()
        read_until = time.perf_counter() - begin
        self._stream.synchronize()
        return copied / (time.perf_counter() - begin), read / read_until

    def _pieces_of(self, memory: torch.Tensor) -> list[torch.Tensor]:
        size = min(_PIECE, len(self._target))
        return [memory[start : start + size] for start in range(0, len(memory), size)]

    def _enqueue(self, piece: torch.Tensor) -> torch.cuda.Event:
        with torch.cuda.stream(self._stream):
            self._target[: len(piece)].copy_(piece, non_blocking=True)
            event: torch.cuda.Event = self._stream.record_event()
            return event


def held_memory(bank: ExpertBank) -> torch.Tensor:
    """The longest part of the arena in which every expert is held: pages given back read as one of zeros."""
    stride = bank.arena.numel() // bank.held.size
    best = run = end = 0
    for number, held in enumerate(bank.held.ravel().tolist(), start=1):
        run = run + 1 if held else 0
        if run > best:
            best, end = run, number
    return bank.arena[(end - best) * stride : end * stride]


def gpu_read_rate(device: torch.device) -> float:
    """Bytes per second at which the GPU reads: the best of several sums over much memory, freed again."""
    free, _ = torch.cuda.mem_get_info(device)
    values = torch.zeros(min(_GPU_READ, free // 4) // 4, dtype=torch.float32, device=device)
    best = float("inf")
    for _ in range(8):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        values.sum()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3)
    rate = values.numel() * 4 / best
    del values
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    return rate
