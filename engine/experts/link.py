"""The way of a step's small data between the model's device and the host: routing, activations, results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from kernels.gpu.support import usable


@dataclass(frozen=True)
class Groups:
    """The (token, expert) pairs of one layer and step, sorted by expert.

    `counts` is int64 [experts]; expert e's pairs are `bounds[e]` … `bounds[e + 1]` of `tokens` (int32, row
    numbers) and of `pairs` (int64, positions in the flattened [tokens, top_k] routing).
    """

    counts: npt.NDArray[np.int64]
    bounds: list[int]
    tokens: npt.NDArray[np.int32]
    pairs: npt.NDArray[np.int64]

    @staticmethod
    def of(expert_ids: npt.NDArray[np.int64], experts: int) -> Groups:
        """Sort a routing int64 [tokens, top_k]; within an expert, tokens stay in order."""
        flat = expert_ids.reshape(-1)
        pairs = np.argsort(flat, kind="stable")
        counts = np.bincount(flat, minlength=experts)
        bounds = [0, *np.cumsum(counts).tolist()]
        return Groups(counts, bounds, (pairs // expert_ids.shape[1]).astype(np.int32), pairs)


class HostLink(Protocol):
    """Between the model's device and the host. One step of a layer at a time."""

    def sorted_pairs(self, ids: torch.Tensor) -> torch.Tensor:
        """`Groups.pairs` of a routing, int64 [tokens * top_k] on the model's device."""
        ...

    def routing(self, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Expert ids and weights on the host."""
        ...

    def send(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Bring rows of activations, float32 [rows, hidden], to the host.

        Returns them, and a zeroed buffer of the same size for what the CPU makes of them.
        """
        ...

    def add_results(self, out: torch.Tensor, tokens: torch.Tensor, first: int) -> None:
        """Add rows of that buffer, from `first` on, to the rows `tokens` of `out` on the model's device.

        `tokens`: int64, all different, on the model's device.
        """
        ...


class DirectLink:
    """The model computes on the CPU: everything is where it is needed."""

    def __init__(self, hidden: int) -> None:
        self._out = torch.empty(0, hidden)

    def sorted_pairs(self, ids: torch.Tensor) -> torch.Tensor:
        """Sorted."""
        return _sorted_pairs(ids)

    def routing(self, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As given."""
        return ids, weights

    def send(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows themselves."""
        if len(self._out) < len(x):
            self._out = torch.empty(len(x), self._out.shape[1])
        return x, self._out[: len(x)].zero_()

    def add_results(self, out: torch.Tensor, tokens: torch.Tensor, first: int) -> None:
        """Add them."""
        out.index_add_(0, tokens, self._out[first : first + len(tokens)])


class CudaLink:
    """The model computes on a GPU: small transfers through pinned buffers, on the compute stream.

    There are two buffers for results, used in turns: the GPU may still be reading those of the layer before.
    The other one is zeroed while the host waits for the router, when it has nothing else to do.
    """

    def __init__(self, hidden: int, top_k: int, device: torch.device) -> None:
        self._device = device
        self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        # A copy of the results would wait behind the experts that are on their way: up to 6 ms of a layer.
        self._reads_host = usable(device)
        self._ids = torch.empty(0, top_k, dtype=torch.int64)
        self._weights = torch.empty(0, top_k)
        self._x = torch.empty(0, hidden)
        self._out = torch.empty(0, hidden)
        self._next = torch.empty(0, hidden)
        self._dirty = [0, 0]  # rows of `_out` and of `_next` that may not be zero

    def sorted_pairs(self, ids: torch.Tensor) -> torch.Tensor:
        """Sorted on the GPU: an upload would wait behind the experts' copies."""
        return _sorted_pairs(ids)

    def routing(self, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Copy both and wait for them, and with them for everything enqueued before."""
        tokens = len(ids)
        if tokens > len(self._ids):
            self._ids, self._weights = _pinned_like(self._ids, tokens), _pinned_like(self._weights, tokens)
        self._ids[:tokens].copy_(ids, non_blocking=True)
        self._weights[:tokens].copy_(weights, non_blocking=True)
        self._done.record(torch.cuda.current_stream(self._device))
        self._clean_next()
        self._done.synchronize()
        return self._ids[:tokens], self._weights[:tokens]

    def send(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Copy the rows and wait for them."""
        rows = len(x)
        if rows > len(self._x):
            torch.cuda.current_stream(self._device).synchronize()  # the old buffers may be in use
            new = [_pinned_like(self._x, rows).zero_() for _ in range(3)]
            self._x, self._out, self._next = new  # all or, where memory is short, none
            self._dirty = [0, 0]
        self._x[:rows].copy_(x, non_blocking=True)
        self._done.record(torch.cuda.current_stream(self._device))
        self._clean_next()  # again: nothing is left to do unless there was no routing since
        self._out, self._next = self._next, self._out
        self._dirty = [rows, self._dirty[0]]
        self._done.synchronize()
        return self._x[:rows], self._out[:rows]

    def _clean_next(self) -> None:
        self._next[: self._dirty[1]].zero_()
        self._dirty[1] = 0

    def add_results(self, out: torch.Tensor, tokens: torch.Tensor, first: int) -> None:
        """Add the results where they lie, or through a copy where no kernel can be compiled."""
        results = self._out[first : first + len(tokens)]
        if self._reads_host:
            from kernels.gpu.host import add_from_host

            add_from_host(out, results, tokens)
        else:
            out.index_add_(0, tokens, results.to(self._device, non_blocking=True))


def _pinned_like(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Pinned memory for `count` such rows."""
    return torch.empty(count, rows.shape[1], dtype=rows.dtype, pin_memory=True)


def _sorted_pairs(ids: torch.Tensor) -> torch.Tensor:
    return torch.sort(ids.reshape(-1), stable=True).indices
