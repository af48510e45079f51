"""In which number format a GPU computes a model: bf16, or float32 where the model is small. Torch-free."""

from __future__ import annotations

from engine.checkpoint.inspect import ModelInfo
from engine.units import MIB

# A model with fewer bytes beside its experts (bf16) loses nothing by float32: a step's time is then launches,
# not bytes. It gains the most: on an H200 the starter model's first word flipped with bf16's rounding.
_SMALL = 256 * MIB


def gpu_value_bytes(info: ModelInfo) -> int:
    """Bytes of a number on the GPU, in the dense weights, the KV cache and the activations: 2 or 4."""
    return 4 if info.other_bytes <= _SMALL else 2
