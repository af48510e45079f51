"""A part of a packed expert as plain matrices, for products with many tokens, in memory that is reused."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from engine.experts.panels import Panels, panels_at_once, unpacked_values
from kernels.cpu import ExpertShape, unpack_expert
from kernels.gpu.support import usable
from kernels.shape import PANEL_ROWS


class ExpertWorkspace:
    """Room for the plain matrices of some panels. One user at a time, on one CUDA stream."""

    def __init__(self, shape: ExpertShape, number_format: torch.dtype, device: torch.device) -> None:
        self._shape = shape
        self._values = torch.empty(unpacked_values(shape), dtype=number_format, device=device)

    def close(self) -> None:
        """Let go of the memory; nothing can be unpacked any more."""
        self._values = self._values.new_empty(0)

    def parts(
        self, block: torch.Tensor, panels: Panels | None = None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Some panels after the others (None: all): w1 and w3 [2 neurons, hidden], and w2 [hidden, neurons].

        Each pair is overwritten by the next one. `block` is a packed expert, uint8 [nbytes], on the device.
        """
        shape, step = self._shape, panels_at_once(self._shape)
        begin, end = panels or (0, shape.panels)
        for first in range(begin, end, step):
            last = min(first + step, end)
            neurons = min(last * PANEL_ROWS, shape.intermediate) - first * PANEL_ROWS
            size = neurons * shape.hidden
            gate_up = self._values[: 2 * size].view(2 * neurons, shape.hidden)
            down = self._values[2 * size : 3 * size].view(shape.hidden, neurons)
            self._unpack(block, (first, last), gate_up, down)
            yield gate_up, down

    def _unpack(self, block: torch.Tensor, panels: Panels, gate_up: torch.Tensor, down: torch.Tensor) -> None:
        if usable(block.device):
            from kernels.gpu.unpack import unpack  # not before: Triton may be missing

            unpack(block, self._shape, panels, gate_up, down)
            return
        w1, w3, w2 = unpack_expert(block, self._shape, panels)
        gate_up[: len(w1)] = w1
        gate_up[len(w1) :] = w3
        down.copy_(w2)
