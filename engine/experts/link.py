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

    def routing(self, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Expert ids and weights on the host; the only point of a layer where the host waits."""
        ...

    def send_activations(self, x: torch.Tensor) -> None:
        """Start bringing `x` to the host; it is there once `routing` has returned."""
        ...

    def activations(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """On the host: the rows that were sent, and a zeroed [tokens, hidden] for the CPU's results."""
        ...

    def add_results(self, out: torch.Tensor) -> None:
        """Add the CPU's results to `out` on the model's device."""
        ...

    def sorted_pairs(self, ids: torch.Tensor) -> torch.Tensor:
        """`Groups.pairs` of a routing, int64 [tokens * top_k] on the model's device."""
        ...


class DirectLink:
    """The model computes on the CPU: everything is where it is needed."""

    def __init__(self, hidden: int) -> None:
        self._out = torch.empty(0, hidden)
        self._x = self._out

    def routing(self, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """As given."""
        return ids, weights

    def send_activations(self, x: torch.Tensor) -> None:
        """Keep a reference."""
        self._x = x

    def activations(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows themselves, and a buffer for results."""
        if len(self._out) < tokens:
            self._out = torch.empty(tokens, self._out.shape[1])
        return self._x, self._out[:tokens].zero_()

    def add_results(self, out: torch.Tensor) -> None:
        """Add the buffer."""
        out += self._out[: len(out)]

    def sorted_pairs(self, ids: torch.Tensor) -> torch.Tensor:
        """Sorted."""
        return _sorted_pairs(ids)


class CudaLink:
    """The model computes on a GPU: small transfers through pinned buffers, one wait per layer.

    All transfers run on the compute stream; results are read by a kernel. A buffer is written again only
    after the next layer's wait for its routing, so every transfer from it has then finished.
    """

    def __init__(self, hidden: int, top_k: int, device: torch.device) -> None:
        self._hidden = hidden
        self._top_k = top_k
        self._device = device
        self._routed = torch.cuda.Event()  # type: ignore[no-untyped-call]
        # A copy of the results would wait behind the experts that are on their way: up to 6 ms of a layer.
        self._reads_host = usable(device)
        self._grow(1)

    def _grow(self, tokens: int) -> None:
        self._capacity = tokens
        pairs = (tokens, self._top_k)
        self._ids = torch.empty(pairs, dtype=torch.int64, pin_memory=True)
        self._weights = torch.empty(pairs, pin_memory=True)
        self._x = torch.empty(tokens, self._hidden, pin_memory=True)
        self._out = torch.empty(tokens, self._hidden, pin_memory=True)

    def routing(self, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Copy both and wait for them, and with them for everything enqueued before."""
        tokens = len(ids)
        self._ids[:tokens].copy_(ids, non_blocking=True)
        self._weights[:tokens].copy_(weights, non_blocking=True)
        self._routed.record(torch.cuda.current_stream(self._device))
        self._routed.synchronize()
        return self._ids[:tokens], self._weights[:tokens]

    def send_activations(self, x: torch.Tensor) -> None:
        """Copy the rows, float32 or narrower, behind what is enqueued."""
        if len(x) > self._capacity:
            torch.cuda.current_stream(self._device).synchronize()  # the old buffers may be on their way
            self._grow(len(x))
        self._x[: len(x)].copy_(x, non_blocking=True)

    def activations(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The pinned buffers."""
        return self._x[:tokens], self._out[:tokens].zero_()

    def add_results(self, out: torch.Tensor) -> None:
        """Add the results where they lie, or through a copy where no kernel can be compiled."""
        if self._reads_host:
            from kernels.gpu.host import add_from_host

            add_from_host(out, self._out[: len(out)])
        else:
            out += self._out[: len(out)].to(self._device, non_blocking=True)

    def sorted_pairs(self, ids: torch.Tensor) -> torch.Tensor:
        """Sorted on the GPU: an upload would wait behind the experts' copies."""
        return _sorted_pairs(ids)


def _sorted_pairs(ids: torch.Tensor) -> torch.Tensor:
    return torch.sort(ids.reshape(-1), stable=True).indices
