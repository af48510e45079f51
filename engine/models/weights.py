"""The dense weights of a Mixtral model, everything but the experts, in the form a device computes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.tensors import load_tensor
from engine.errors import CheckpointError
from engine.models import tensors
from engine.models.config import MixtralConfig
from engine.models.linear import (
    CpuLinear,
    CpuLinears,
    Linear,
    Linears,
    PlainLinear,
    PlainLinears,
    QuantisedLinear,
    QuantisedLinears,
)
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from kernels.cpu import CpuPool, PackedLinear
from kernels.errors import WeightRangeError
from kernels.quantised import Int8Matrix, dequantise_int8
from kernels.shape import TILE_COLS, TILE_ROWS


class Embedding(Protocol):
    """Rows of the token embeddings, where the model is computed."""

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """int64 [tokens] on the CPU to float32 [tokens, hidden]."""
        ...


class TableEmbedding:
    """A plain table [vocabulary, hidden] where the model is computed."""

    def __init__(self, table: torch.Tensor) -> None:
        self.weight = table

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """int64 [tokens] to float32 [tokens, hidden]."""
        return self.weight[ids.to(self.weight.device)].float()


class HostEmbedding:
    """A plain table [vocabulary, hidden] in the host's pinned memory, from which a GPU's kernels read rows.

    A step needs 8 KB of it for each token. On the GPU, Mixtral's 250 MiB are the place of most of an expert
    in bf16, and of two and a half in 4 bits.
    """

    def __init__(self, table: torch.Tensor, device: torch.device) -> None:
        self.weight = table.pin_memory()
        self._device = device

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """int64 [tokens] to float32 [tokens, hidden], on the GPU."""
        return self.weight[ids].to(self._device).float()


class QuantisedEmbedding:
    """The rows of an output layer in 8 bits that is also the table."""

    def __init__(self, table: Int8Matrix) -> None:
        self.weight = table

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """int64 [tokens] to float32 [tokens, hidden]."""
        there = ids.to(self.weight.values.device)
        return dequantise_int8(self.weight.values[there], self.weight.scales[there])


class PackedEmbedding:
    """Rows of a packed output layer that is also the table: tied embeddings take memory once."""

    def __init__(self, packed: PackedLinear) -> None:
        # [row tiles, tiles of inputs, pairs, rows, 2], see kernels.layout
        shape = (-1, -(-packed.cols // TILE_COLS), TILE_COLS // 2, TILE_ROWS, 2)
        self._tiles = packed.data.view(torch.bfloat16).view(shape)
        self._hidden = packed.cols

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """int64 [tokens] to float32 [tokens, hidden]."""
        rows = self._tiles[ids // TILE_ROWS, :, :, ids % TILE_ROWS]
        return rows.flatten(1)[:, : self._hidden].float().contiguous()


@dataclass(frozen=True)
class LayerWeights:
    """One layer without its experts. Norms [hidden] and the router [experts, hidden] are float32."""

    input_norm: torch.Tensor
    qkv: Linear  # queries, keys and values in one product
    attention_out: Linear
    post_norm: torch.Tensor
    router: torch.Tensor


@dataclass(frozen=True)
class DenseWeights:
    """A model without its experts. `number_format` is what its matrices are multiplied in."""

    number_format: torch.dtype
    embedding: Embedding
    layers: tuple[LayerWeights, ...]
    final_norm: torch.Tensor
    output: Linear


def load_dense(
    checkpoint: Checkpoint,
    config: MixtralConfig,
    device: torch.device,
    pool: CpuPool,
    *,
    number_format: torch.dtype = torch.bfloat16,
    in_8_bits: bool = False,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
) -> DenseWeights:
    """Read the dense weights in the form that suits the device.

    On the CPU they are packed for its kernels. On a GPU they are plain, in `number_format`, or, with
    `in_8_bits`, rounded to 8 bits and multiplied in `number_format` (`engine.gpu_format` says when).

    Raises:
        CheckpointError: a tensor is missing or unreadable, or cannot be held in 8 bits.
        Cancelled: between two layers.
    """
    hidden = config.hidden_size
    layer_shapes = [(config.qkv_rows, hidden), (hidden, config.num_heads * config.head_dim)]
    shapes = [*layer_shapes * config.num_layers, (config.vocab_size, hidden)]
    linears: Linears
    if device.type == "cpu":
        linears = CpuLinears(pool, shapes)
    elif in_8_bits:
        linears = QuantisedLinears(device, number_format, shapes, pool.threads)
    else:
        linears = PlainLinears(device, number_format)
    try:
        return load_as(linears, checkpoint, config, device, progress=progress, cancel=cancel)
    except WeightRangeError as error:
        raise CheckpointError(
            "The model cannot be held in 8 bits.",
            why="One of the matrices of its attention or its output layer has a weight that is too large.",
            action="Choose the precision bf16.",
        ) from error


def load_as(
    linears: Linears,
    checkpoint: Checkpoint,
    config: MixtralConfig,
    device: torch.device,
    *,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
) -> DenseWeights:
    """Read the dense weights, with matrices made by `linears` and everything else on `device`.

    Raises:
        CheckpointError: a tensor is missing or unreadable.
        WeightRangeError: a weight is too large for the form.
        Cancelled: between two layers.
    """

    def matrix(name: str, rows: int, columns: int) -> torch.Tensor:
        return load_tensor(checkpoint, name, (rows, columns), torch.bfloat16)

    def small(name: str, *shape: int) -> torch.Tensor:
        return load_tensor(checkpoint, name, shape, torch.float32).to(device)

    hidden = config.hidden_size
    queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim

    def load_layer(index: int) -> LayerWeights:
        parts = [("q_proj", queries), ("k_proj", keys), ("v_proj", keys)]
        qkv = [matrix(tensors.layer(index, f"self_attn.{name}"), rows, hidden) for name, rows in parts]
        return LayerWeights(
            small(tensors.layer(index, "input_layernorm"), hidden),
            linears.add(torch.cat(qkv)),
            linears.add(matrix(tensors.layer(index, "self_attn.o_proj"), hidden, queries)),
            small(tensors.layer(index, "post_attention_layernorm"), hidden),
            small(tensors.layer(index, "block_sparse_moe.gate"), config.num_experts, hidden),
        )

    layers = []
    for index in range(config.num_layers):
        if cancel is not None:
            cancel.raise_if_cancelled()
        layers.append(load_layer(index))
        progress(Progress("Loading layers", index + 1, config.num_layers, "layers"))
    table = matrix(tensors.EMBEDDINGS, config.vocab_size, hidden)
    if config.tie_word_embeddings:
        output = linears.add(table)
        embedding = _tied_embedding(output)
    else:
        output = linears.add(matrix(tensors.OUTPUT, config.vocab_size, hidden))
        embedding = _own_embedding(table, device)
    final_norm = small(tensors.FINAL_NORM, hidden)
    return DenseWeights(linears.number_format, embedding, tuple(layers), final_norm, output)


def _own_embedding(table: torch.Tensor, device: torch.device) -> Embedding:
    """Of a table that nothing else uses: a GPU reads it from the host."""
    if device.type == "cpu":
        return TableEmbedding(table)
    try:
        return HostEmbedding(table, device)
    except RuntimeError:  # the system pins no more memory; the GPU may still have room
        return TableEmbedding(table.to(device))


def _tied_embedding(output: Linear) -> Embedding:
    """The rows of the output layer's matrix: tied embeddings take memory once."""
    if isinstance(output, CpuLinear):
        return PackedEmbedding(output.packed)
    if isinstance(output, QuantisedLinear):
        return QuantisedEmbedding(output.weight)
    assert isinstance(output, PlainLinear)
    return TableEmbedding(output.weight)
