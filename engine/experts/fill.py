"""Filling the arena: experts read straight from the checkpoint into their blocks, several at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

import torch

from engine.budget import LOADING_SCRATCH
from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.safetensors import TensorInfo
from engine.checkpoint.tensors import not_finite, writable_bytes
from engine.errors import CheckpointError
from engine.models import tensors
from engine.precision import precision_name
from engine.progress import CancelToken, Progress, ProgressCallback
from kernels.errors import NonFiniteWeightError, WeightRangeError
from kernels.rows import (
    MATRICES,
    can_pack_files,
    matrix_size,
    pack_expert_file_rows,
    pack_expert_rows,
)
from kernels.shape import TILE_ROWS, ExpertShape

# Scratches full that a thread reads and packs before it comes back. With one, sixteen threads mostly waited
# for Python's lock (16 cores, bf16: 7.5 GB/s, less than three of them at work). Cancelling waits for as many.
_SCRATCHES = 8


class ExpertReader:
    """Reads experts of one shape, each matrix some rows at a time. May be used by several threads."""

    def __init__(self, checkpoint: Checkpoint, shape: ExpertShape) -> None:
        self._checkpoint = checkpoint
        self._shape = shape
        self._scratch = threading.local()

    def read(
        self, layer: int, expert: int, block: torch.Tensor, check: Callable[[], None] = lambda: None
    ) -> None:
        """Read an expert into its packed block, uint8 [shape.nbytes].

        `check` is called before each part and may raise to leave. Raises CheckpointError.
        """
        for matrix in MATRICES:
            height, width = matrix_size(matrix, self._shape)
            info = self._checkpoint.info(tensors.expert(layer, expert, matrix), (height, width))
            scratch = self._buffer(rows_at_once(width) * width).view(-1, width)
            step = len(scratch) * (_SCRATCHES if can_pack_files() else 1)
            for first in range(0, height, step):
                check()
                try:
                    self._pack(info, matrix, first, min(step, height - first), scratch, block)
                except NonFiniteWeightError as error:
                    raise not_finite(info, (error.row, error.col)) from error
                except WeightRangeError as error:
                    raise CheckpointError(
                        f"The model cannot be held in {precision_name(self._shape.format)}.",
                        why=f"{info.name} in {info.file.name} has a weight at position "
                        f"[{error.row}, {error.col}] that is too large for it.",
                        action="Choose the precision bf16.",
                    ) from error

    def _pack(
        self,
        info: TensorInfo,
        matrix: str,
        first: int,
        count: int,
        scratch: torch.Tensor,
        block: torch.Tensor,
    ) -> None:
        """Read and pack rows [first, first + count) of a matrix; on Windows no more than `scratch` holds."""
        shape, row_bytes = self._shape, scratch.shape[1] * scratch.element_size()

        def read(handle: int, position: int) -> int:
            return pack_expert_file_rows(matrix, first, count, handle, position, scratch, block, shape)

        if can_pack_files():
            self._checkpoint.read_by(read, info, first * row_bytes, count * row_bytes)
        else:
            rows = scratch[:count]
            self._checkpoint.read_into(info, writable_bytes(rows), first * row_bytes)
            pack_expert_rows(matrix, first, rows, block, shape)

    def _buffer(self, count: int) -> torch.Tensor:
        """This thread's scratch, bf16 [count]; it stays in the core's cache between reading and packing."""
        buffer: torch.Tensor | None = getattr(self._scratch, "buffer", None)
        if buffer is None or len(buffer) < count:
            buffer = self._scratch.buffer = torch.empty(count, dtype=torch.bfloat16)
        return buffer[:count]


def rows_at_once(width: int) -> int:
    """Rows of a bf16 matrix that are read before they are packed: about a scratch full, whole tiles."""
    return max(1, LOADING_SCRATCH // (2 * width * TILE_ROWS)) * TILE_ROWS


def fill(
    experts: Sequence[tuple[int, int]],
    read: Callable[[int, int, Callable[[], None]], None],
    threads: int,
    progress: ProgressCallback,
    cancel: CancelToken | None,
) -> None:
    """Call `read` for every (layer, expert), `threads` at a time; what it raises ends the filling.

    `read` also gets a function to call between its parts: it raises Cancelled once all of them shall stop, as
    the experts under way may be gigabytes.

    Raises:
        Cancelled: between two parts of an expert.
    """
    work = iter(experts)
    stop = CancelToken()

    def check() -> None:
        stop.raise_if_cancelled()
        if cancel is not None:
            cancel.raise_if_cancelled()

    with ThreadPoolExecutor(threads, thread_name_prefix="bank") as pool:
        running: set[Future[None]] = set()
        try:
            for done in range(len(experts)):
                check()
                running |= {
                    pool.submit(read, *item, check) for item in islice(work, threads + 1 - len(running))
                }
                finished, running = _first(running)
                finished.result()
                progress(Progress("Loading experts", done + 1, len(experts), "experts"))
        except BaseException:
            stop.cancel()  # the pool's exit waits for the others
            raise


def _first(running: set[Future[None]]) -> tuple[Future[None], set[Future[None]]]:
    """One finished future of `running`, and the others."""
    finished = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
    return finished, running - {finished}
