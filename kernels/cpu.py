"""The CPU's kernels behind tensors: a pool of threads that runs packed experts and linear layers.

Activations are float32 in and out. Levels up to AVX512 multiply in float32 (bf16 weights are widened
exactly); AVX512_BF16 and AMX round activations to bf16 and add in float32. Weights of 8 and 4 bits are taken
as they are, unrounded, for a few tokens and rounded to bf16 for more; where a pool's tuning says so
(`kernels.tuning`), activations are rounded to 8 bits instead.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernels import native
from kernels.errors import PoolError
from kernels.formats import WeightFormat
from kernels.isa import Isa, available_isas, check_available, default_isa
from kernels.layout import ExpertShape, PackedLinear, check_block
from kernels.pack import pack_expert
from kernels.threads import default_pool_threads, pinning_allowed, usable_cpus
from kernels.tuning import FormatTuning, Tuning, Ways
from kernels.unpack import unpack_expert

__all__ = [
    "CpuPool",
    "ExpertJob",
    "ExpertShape",
    "Isa",
    "PackedLinear",
    "Ticket",
    "available_isas",
    "default_isa",
    "pack_expert",
    "unpack_expert",
]


@dataclass
class ExpertJob:
    """One expert and the tokens that chose it.

    `block`: the packed expert, uint8 [shape.nbytes], aligned to 64 bytes. `tokens`: int32 [n], rows of x
    and of out; n may be 0 and a row may occur more than once. `weights`: float32 [n], their routing weights.
    `panels`: the share of the expert that is meant, first panel and end; None for all of it. The outputs of
    panels [0, a) and [a, shape.panels) add up to the expert's.
    """

    block: Tensor
    tokens: Tensor
    weights: Tensor
    panels: tuple[int, int] | None = None


class Ticket:
    """Work that was submitted to a pool. It holds the tensors of the call until it is waited for."""

    def __init__(self, pool: CpuPool, native_ticket: Any, tensors: tuple[object, ...]) -> None:
        self._pool = pool
        self._native = native_ticket
        self._tensors = tensors

    def wait(self) -> None:
        """Help with the work, then block until all of it is done. Waiting again returns at once.

        A closed pool still finishes what was submitted. Several threads may wait. Raises MemoryError where
        the threads' own buffers, some hundred KB each, could not be had; the contents of `out` are undefined
        then.
        """
        ticket = self._native
        if ticket is None:
            return
        self._pool.check_process()
        try:
            ticket.wait()
        finally:
            self._native = None
            self._tensors = ()

    @property
    def running(self) -> bool:
        """Whether nobody has waited for the end yet: the call's tensors are still in use."""
        return self._native is not None

    def cancel(self) -> None:
        """Leave out what has not begun; returns at once, from any thread. Without effect after the end.

        `wait` must still be called before the tensors are used: it returns when the pieces that were running
        have ended, each within some hundred microseconds. The contents of `out` are undefined then.
        """
        ticket = self._native
        if ticket is not None:
            self._pool.check_process()
            ticket.cancel()

    def __del__(self) -> None:
        # The threads still use the tensors of a ticket that nobody waited for.
        if self._native is not None and self._pool.in_own_process():
            with contextlib.suppress(MemoryError):  # nobody is left to be told
                self._native.wait()


class CpuPool:
    """Persistent threads that run the kernels of one instruction set level.

    `threads` counts the thread that calls and waits (it helps), so one fewer is started; by default the
    usable physical cores, on larger machines all but one (see `kernels.topology.default_threads`). `pin`
    keeps each started thread on a core of its own (on Linux, unless FIDDLER_PIN=0); the calling thread is
    never pinned. Results depend on the thread count, never on timing. The calls may come from several threads
    and release the GIL. A pool works only in the process that made it. Use it as a context manager, or close
    it; what is still open at the end of the program is closed then.
    """

    def __init__(self, threads: int | None = None, isa: Isa | None = None, pin: bool = True) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"a pool has at least one thread, not {threads}")
        self.threads = threads if threads is not None else default_pool_threads()
        self.isa = check_available(isa) if isa is not None else default_isa()
        self._process = os.getpid()
        cpus = usable_cpus() if pin and pinning_allowed() else ()
        try:
            self._native = native.load().Pool(self.threads, self.isa.value, cpus)
        except RuntimeError as error:  # what std::thread throws; those that did start have ended
            raise PoolError(
                f"The system does not give {self.threads} threads.", "Choose fewer CPU threads."
            ) from error
        self._close = weakref.finalize(self, self._native.close)

    def submit_experts(self, x: Tensor, jobs: Sequence[ExpertJob], shape: ExpertShape, out: Tensor) -> Ticket:
        """Start `run_experts` beside the caller and return at once.

        x, out and the jobs' tensors must not be changed before the ticket has been waited for, and `out` must
        not be read. With a pool of one thread the work begins in `Ticket.wait`.
        """
        self.check_usable()
        tokens = _check_rows("x", x, shape.hidden)
        if _check_rows("out", out, shape.hidden) != tokens:
            raise ValueError(f"x and out must have the same rows, not {tokens} and {out.shape[0]}")
        for job in jobs:
            _check_job(job, shape)
        whole = (0, shape.panels)
        native_ticket = self._native.submit_experts(
            shape.native,
            x.data_ptr(),
            tokens,
            out.data_ptr(),
            [
                (
                    job.block.data_ptr(),
                    job.tokens.data_ptr(),
                    job.weights.data_ptr(),
                    job.tokens.shape[0],
                    *(job.panels or whole),
                )
                for job in jobs
            ],
        )
        # The job's fields, not the jobs: a caller may put other tensors into a job meanwhile.
        tensors = tuple((job.block, job.tokens, job.weights) for job in jobs)
        return Ticket(self, native_ticket, (x, out, tensors))

    def run_experts(self, x: Tensor, jobs: Sequence[ExpertJob], shape: ExpertShape, out: Tensor) -> None:
        """Add the weighted outputs of all jobs to `out`: out[t] += weight · w2 (silu(w1 x[t]) ⊙ w3 x[t]).

        x and out are contiguous float32 [tokens, hidden] on the CPU. Raises ValueError for tensors of another
        kind and IndexError for a token that is no row of x; then nothing has been added.
        """
        self.submit_experts(x, jobs, shape, out).wait()

    def linear(self, x: Tensor, weight: PackedLinear, out: Tensor | None = None) -> Tensor:
        """Return x [tokens, cols] times the transposed weight: float32 [tokens, rows], in `out` if given.

        Each result is one sum in a fixed order, so it does not depend on the number of threads.
        """
        self.check_usable()
        tokens = _check_rows("x", x, weight.cols)
        if out is None:
            out = torch.empty(tokens, weight.rows)
        elif _check_rows("out", out, weight.rows) != tokens:
            raise ValueError(f"x and out must have the same rows, not {tokens} and {out.shape[0]}")
        self._native.linear(
            weight.rows, weight.cols, weight.data.data_ptr(), x.data_ptr(), tokens, out.data_ptr()
        )
        return out

    def read(self, buffer: Tensor, *, four_streams: bool = False, prefetch_words: int = 0) -> int:
        """Read a buffer on all threads and return the exclusive or of its 64-bit words.

        The time this takes is the memory's; decode cannot be faster. Threads take contiguous parts of it:
        from its start to its end or in four quarters side by side, asking for lines some words ahead or not.
        Which is fastest depends on the machine: see `kernels.bandwidth`. `buffer`: contiguous, on the CPU, of
        a multiple of 8 bytes, aligned to 8.
        """
        self.check_usable()
        nbytes = buffer.numel() * buffer.element_size()
        if not buffer.is_contiguous() or not buffer.is_cpu or nbytes % 8 or buffer.data_ptr() % 8:
            raise ValueError("the buffer must be contiguous, on the CPU, and a multiple of 8 bytes")
        return int(self._native.read(buffer.data_ptr(), nbytes // 8, four_streams, prefetch_words))

    @property
    def tuning(self) -> Tuning:
        """How experts are multiplied; set it between calls, not while a ticket is waited for."""
        formats, panel_tokens = self._native.tuning()
        choices = (FormatTuning(few, bool(eight), bool(many), exact) for few, eight, many, exact in formats)
        return Tuning(dict(zip(WeightFormat, choices, strict=True)), panel_tokens)

    @tuning.setter
    def tuning(self, tuning: Tuning) -> None:
        choices = [tuning.formats[each] for each in WeightFormat]
        self._native.set_tuning(
            [
                [each.few_tokens, int(each.few_eight_bit), int(each.many_eight_bit), each.exact_tokens]
                for each in choices
            ],
            tuning.panel_tokens,
        )

    def ways(self, weight_format: WeightFormat) -> Ways:
        """The ways that this pool's level has for experts of a format."""
        return Ways(*self._native.ways(weight_format.number))

    @property
    def native(self) -> Any:
        """The native pool, for the other modules of this package."""
        return self._native

    def close(self) -> None:
        """End the threads, after what was submitted. Closing again does nothing."""
        self._close()

    @property
    def closed(self) -> bool:
        """Whether the pool was closed."""
        return not self._close.alive

    def check_usable(self) -> None:
        """Raise PoolError if the pool is closed or belongs to another process."""
        if not self._close.alive:
            raise PoolError("The pool of CPU threads is closed.", "Make a new one.")
        self.check_process()

    def check_process(self) -> None:
        """Raise PoolError in a process forked from the pool's own: its threads do not exist there."""
        if not self.in_own_process():
            raise PoolError(
                f"The pool of CPU threads belongs to process {self._process}, and this is a fork of it.",
                "Make a new pool in the new process.",
            )

    def in_own_process(self) -> bool:
        """Whether this is the process that made the pool, not a fork of it."""
        return os.getpid() == self._process

    def __enter__(self) -> CpuPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_rows(name: str, tensor: Tensor, width: int) -> int:
    """Return the rows of a contiguous float32 [rows, width] on the CPU, or raise ValueError."""
    shape = tensor.shape
    if (
        len(shape) != 2
        or shape[1] != width
        or tensor.dtype != torch.float32
        or not tensor.is_contiguous()
        or not tensor.is_cpu
    ):
        raise ValueError(
            f"{name} must be contiguous float32 [tokens, {width}] on the CPU, "
            f"not {tensor.dtype} {list(shape)} on {tensor.device}"
        )
    return shape[0]


def _check_job(job: ExpertJob, shape: ExpertShape) -> None:
    check_block(job.block, shape)
    if job.panels is not None and not 0 <= job.panels[0] <= job.panels[1] <= shape.panels:
        raise ValueError(f"an expert of {shape.panels} panels has no panels {job.panels}")
    tokens, weights = job.tokens, job.weights
    if tokens.dtype != torch.int32 or tokens.dim() != 1 or not tokens.is_contiguous() or not tokens.is_cpu:
        raise ValueError(f"tokens must be contiguous int32 [n] on the CPU, not {tokens.dtype}")
    if (
        weights.dtype != torch.float32
        or weights.shape != tokens.shape
        or not weights.is_contiguous()
        or not weights.is_cpu
    ):
        raise ValueError(
            f"weights must be contiguous float32 [{tokens.shape[0]}] on the CPU, "
            f"not {weights.dtype} {list(weights.shape)}"
        )
