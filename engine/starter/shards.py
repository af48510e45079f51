"""Writing tensors as a sharded safetensors checkpoint with an index, one shard in memory at a time."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save
from torch import Tensor

from engine.files import write_atomically
from engine.starter.jsontext import to_json


class ShardWriter:
    """Collects tensors into shards of `folder`; the caller decides where one shard ends."""

    def __init__(self, folder: Path, shards: int) -> None:
        self._folder = folder
        self._shards = shards
        self._pending: dict[str, Tensor] = {}
        self._index: dict[str, str] = {}
        self._written = 0
        self._bytes = 0

    def add(self, tensors: dict[str, Tensor]) -> None:
        """Take tensors into the current shard, each as a copy: the format refuses views of one another."""
        self._pending.update({name: tensor.contiguous().clone() for name, tensor in tensors.items()})

    def end_shard(self) -> None:
        """Write the current shard to the disk and begin the next."""
        self._written += 1
        name = f"model-{self._written:05d}-of-{self._shards:05d}.safetensors"
        write_atomically(self._folder / name, save(self._pending, metadata={"format": "pt"}))
        self._index.update(dict.fromkeys(self._pending, name))
        self._bytes += sum(tensor.nbytes for tensor in self._pending.values())
        self._pending = {}

    def index(self) -> str:
        """The text of the index file: which tensor is in which shard. All shards must have been written."""
        if self._pending or self._written != self._shards:
            raise ValueError(
                f"{self._written} of {self._shards} shards written, {len(self._pending)} pending"
            )
        return to_json(
            {"metadata": {"total_size": self._bytes}, "weight_map": dict(sorted(self._index.items()))}
        )
