"""In which formats a GPU holds a model beside its experts, and what that takes. Torch-free.

A model is computed in bf16, or in float32 where it is small. Where its experts are held in 8 or 4 bits, its
other matrices (attention, the output layer) are held in 8: 1.6 instead of 2.9 GB of Mixtral-8x7B. Embeddings
stay in RAM, but for those that are the output layer, too.
That raises the starter model's perplexity on the calibration's text by 0.2 % (1,691 tokens, error 0.1 %).
`gpu_dense_bytes` is what a budget counts as "The layers without their experts".
"""

from __future__ import annotations

from engine.checkpoint.inspect import ModelInfo
from engine.units import MIB
from kernels.formats import GROUP, WeightFormat

# A model with fewer bytes beside its experts (bf16) loses nothing by float32: a step's time is then launches,
# not bytes. It gains the most: on an H200 the starter model's first word flipped with bf16's rounding.
_SMALL = 256 * MIB
# Where a matrix of 8 bits is unpacked, for prompts: all of it, or as many rows at a time as this holds.
UNPACKED_BYTES = 64 * MIB


def gpu_value_bytes(info: ModelInfo) -> int:
    """Bytes of a number on the GPU, in the KV cache, the activations and plain dense weights: 2 or 4."""
    return 4 if info.other_bytes <= _SMALL else 2


def dense_in_8_bits(value_bytes: int, weight_format: WeightFormat) -> bool:
    """Whether the GPU holds the matrices beside the experts in 8 bits.

    `value_bytes` are those of a number there (`gpu_value_bytes`), `weight_format` is the experts'.
    """
    return weight_format is not WeightFormat.BF16 and value_bytes == 2


def gpu_dense_bytes(info: ModelInfo, weight_format: WeightFormat) -> int:
    """Bytes on the GPU of everything but the experts, given the experts' format; the router is float32."""
    config = info.config
    hidden, queries = config.hidden_size, config.num_heads * config.head_dim
    linears = [(config.qkv_rows, hidden), (hidden, queries)] * config.num_layers
    linears.append((config.vocab_size, hidden))
    small = 4 * hidden * (config.num_layers * (config.num_experts + 2) + 1)
    value_bytes = gpu_value_bytes(info)
    if dense_in_8_bits(value_bytes, weight_format):
        matrices = sum(rows * (cols + 2 * -(-cols // GROUP)) for rows, cols in linears)
        return small + matrices + unpacked_bytes(linears, value_bytes)
    return small + value_bytes * sum(rows * cols for rows, cols in linears)


def host_table_bytes(info: ModelInfo) -> int:
    """Bytes of pinned RAM for the embeddings of a model that is computed on a GPU: bf16, unless tied.

    torch's allocator of pinned memory rounds them up to a power of two.
    """
    config = info.config
    if config.tie_word_embeddings:
        return 0
    return 1 << (2 * config.vocab_size * config.hidden_size - 1).bit_length()


def unpacked_bytes(shapes: list[tuple[int, int]], value_bytes: int) -> int:
    """Bytes of the place where matrices [rows, cols] of 8 bits are unpacked one after the other."""
    return max(value_bytes * cols * rows_unpacked(rows, cols, value_bytes) for rows, cols in shapes)


def rows_unpacked(rows: int, cols: int, value_bytes: int) -> int:
    """How many rows of such a matrix are unpacked at a time."""
    return min(rows, max(1, UNPACKED_BYTES // (value_bytes * cols)))
