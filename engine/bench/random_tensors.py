"""The dense weights of a model that exists nowhere: a checkpoint whose tensors are drawn, not read."""

from __future__ import annotations

import zlib
from pathlib import Path

import torch

from engine.bench.random_block import random_bf16
from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.safetensors import TensorInfo
from engine.models import tensors
from engine.models.config import MixtralConfig

_ONE = 0x3F80  # as bf16


class RandomTensors(Checkpoint):
    """Every tensor of a model by name, in bf16: matrices around zero, norms of ones. The same for a seed.

    Whoever loads real weights can load these: nothing of what happens to a tensor afterwards differs.
    """

    def __init__(self, config: MixtralConfig, seed: int = 0) -> None:
        self.folder = Path()
        self.tensors = {name: _info(name, shape) for name, shape in tensors.expected(config)}
        self._seed = seed

    def read_into(self, info: TensorInfo, buffer: memoryview, start: int = 0) -> None:
        """Draw the tensor; `buffer` takes its bytes from byte `start` on."""
        count = info.nbytes // 2
        if len(info.shape) == 1:
            words = torch.full((count,), _ONE, dtype=torch.int16)
        else:
            generator = torch.Generator().manual_seed(zlib.crc32(f"{self._seed} {info.name}".encode()))
            words = random_bf16(count, generator).view(torch.int16)
        target = buffer.cast("B")
        drawn = words.view(torch.uint8).numpy().data[start:]
        size = min(len(target), len(drawn))
        target[:size] = drawn[:size]

    def close(self) -> None:
        """Nothing is open."""


def _info(name: str, shape: tuple[int, ...]) -> TensorInfo:
    return TensorInfo(name, "BF16", shape, Path("random"), 0, 2 * torch.Size(shape).numel())
