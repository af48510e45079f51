"""Rotary position embeddings (RoFormer, arXiv 2104.09864) in the half-split form of Llama and Mixtral."""

from __future__ import annotations

import torch


class RotaryTable:
    """Cosines and signed sines of every position, made on first use in blocks and kept.

    Rotating x by the angle a of its position is x * cos(a) + swap_halves(x) * sin(a), where the sine of the
    first half carries a minus sign. `head_dim` is even, `theta` the base of the frequencies.
    """

    _BLOCK = 1024

    def __init__(self, head_dim: int, theta: float, device: torch.device) -> None:
        steps = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        self._frequencies = (1.0 / theta**steps).to(device)  # [head_dim / 2]
        self._half = head_dim // 2
        self._cos = torch.empty(0, 1, head_dim, device=device)
        self._sin = torch.empty(0, 1, head_dim, device=device)

    def rows(self, start: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and signed sines of `count` positions from `start`, each float32 [count, 1, head_dim]."""
        if start + count > len(self._cos):
            self._grow(start + count)
        return self._cos[start : start + count], self._sin[start : start + count]

    def at(self, positions: torch.Tensor, last: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of the `positions`, int64 [tokens] on the device, of which the greatest is `last`."""
        if last >= len(self._cos):
            self._grow(last + 1)
        return self._cos[positions], self._sin[positions]

    def rotate_(self, heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
        """Rotate `heads` [tokens, heads, head_dim] in place by the rows of their positions."""
        swapped = torch.cat((heads[..., self._half :], heads[..., : self._half]), dim=-1)
        heads.mul_(cos).addcmul_(swapped, sin)

    def _grow(self, length: int) -> None:
        blocks = -(-length // self._BLOCK)
        positions = torch.arange(blocks * self._BLOCK, dtype=torch.float32, device=self._frequencies.device)
        angles = positions[:, None] * self._frequencies
        cos, sin = angles.cos(), angles.sin()
        self._cos = torch.cat((cos, cos), dim=-1)[:, None]
        self._sin = torch.cat((-sin, sin), dim=-1)[:, None]
