"""A loaded model and the part of the engine that a calibration uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from engine.hardware import CpuInfo, DiskInfo, Hardware, MemoryInfo
from engine.models.loader import LoadedModel
from engine.options import LoadOptions
from engine.profile import Profile

MACHINE = Hardware(
    CpuInfo("Ryzen 9", "avx2", ("avx2",), (), 16, 8, 8, 8), (), MemoryInfo(1, 1), DiskInfo("/", 1, 1), "Linux"
)


@dataclass
class OneModel:
    """The part of the engine that a calibration uses, on a fixed machine."""

    parts: LoadedModel
    options: LoadOptions
    hardware: Hardware = MACHINE
    profile: Profile | None = None
    busy: bool = False

    def __post_init__(self) -> None:
        self.info = self.parts.info

    @contextmanager
    def exclusive(self) -> Iterator[LoadedModel]:
        assert not self.busy
        self.busy = True
        try:
            yield self.parts
        finally:
            self.busy = False

    def use_profile(self, profile: Profile) -> None:
        assert self.busy  # nobody else may come between measuring and using it
        self.profile = profile


def add_tokenizer(folder: Path) -> None:
    """A tokenizer of single bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
