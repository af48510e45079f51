"""GGUF files for the tests, written by the `gguf` library."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from engine.checkpoint.gguf_quants import GgmlType


def write(path: Path, metadata: dict[str, object], tensors: dict[str, tuple[np.ndarray, GgmlType]]) -> Path:
    """Write with the library; tensors are given in float32 and quantised by it (or see `blocks_of`)."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in metadata.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_int32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            # The library leaves empty strings out; written as such they are legal.
            writer.add_key_value(key, value, gguf.GGUFValueType.STRING)
        else:
            writer.add_array(key, value)
    for name, (array, kind) in tensors.items():
        quantised = blocks_of(array, kind)
        writer.add_tensor(name, quantised, raw_dtype=gguf.GGMLQuantizationType(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def blocks_of(array: np.ndarray, kind: GgmlType) -> np.ndarray:
    """The array as the library stores it. It cannot quantise to Q4_K: that is noise with small scales."""
    if kind is not GgmlType.Q4_K:
        return gguf.quantize(array, gguf.GGMLQuantizationType(kind))
    *rows, cols = array.shape
    noise = np.random.default_rng(array.size).integers(0, 256, (*rows, cols // 256, 144), np.uint8)
    noise[..., 1:4:2] &= 0xBB  # the float16 scales stay below 2
    return noise.reshape(*rows, cols // 256 * 144)
