"""Model files in the forms that llama.cpp, AutoAWQ and AutoGPTQ write, made from given numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save_file

Q = gguf.GGMLQuantizationType
PLACES = {"w1": "gate", "w3": "up", "w2": "down"}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def stored(weights: np.ndarray, kind: Q) -> np.ndarray:
    """The bytes of weights [..., rows, cols]; the library cannot make Q4_K and Q6_K, so these are noise."""
    if kind in (Q.Q4_K, Q.Q6_K):
        return noise_blocks(weights, kind)
    return gguf.quantize(weights, kind)


def noise_blocks(weights: np.ndarray, kind: Q) -> np.ndarray:
    """Random blocks with small finite scales."""
    per_block, nbytes = gguf.GGML_QUANT_SIZES[kind]
    *outer, cols = weights.shape
    random = np.random.default_rng(weights.size)
    blocks = random.integers(0, 256, (*outer, cols // per_block, nbytes), np.uint8)
    scales = random.uniform(-0.01, 0.01, (*outer, cols // per_block, 2)).astype("<f2")
    place = slice(0, 4) if kind is Q.Q4_K else slice(nbytes - 2, nbytes)
    blocks[..., place] = scales.view(np.uint8)[..., : place.stop - place.start]
    return blocks.reshape(*outer, -1)


def write_gguf(path: Path, tensors: Mapping[str, tuple[np.ndarray, Q]]) -> Path:
    """A file with tensors as bytes of quantised rows."""
    writer = gguf.GGUFWriter(path, "llama")
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def expert_tensors(
    kinds: Mapping[str, Q], *, layers: int = 1, experts: int = 2, hidden: int = 256, inner: int = 512
) -> dict[str, tuple[np.ndarray, Q]]:
    """All experts' tensors as llama.cpp stacks them; `kinds` has the type of w1, w3 and w2."""
    random = np.random.default_rng(layers * experts)
    tensors = {"token_embd.weight": (np.zeros((4, hidden), np.float32), Q.F32)}
    for layer in range(layers):
        for place, kind in kinds.items():
            size = (hidden, inner) if place == "w2" else (inner, hidden)
            weights = random.standard_normal((experts, *size), dtype=np.float32) / 40
            tensors[f"blk.{layer}.ffn_{PLACES[place]}_exps.weight"] = (stored(weights, kind), kind)
    return tensors


def pack(numbers: np.ndarray, bits: int, order: tuple[int, ...] | None = None) -> np.ndarray:
    """Whole numbers [n, m] to int32 [n, m·bits/32]: place i of a word, from the low bits, has `order[i]`."""
    per_word = 32 // bits
    words = np.zeros((len(numbers), numbers.shape[1] // per_word), np.uint64)
    for i, place in enumerate(order or range(per_word)):
        words |= numbers[:, place::per_word].astype(np.uint64) << np.uint64(bits * i)
    return words.astype(np.uint32).view(np.int32)


def awq_tensors(values: np.ndarray, zeros: np.ndarray, scales: np.ndarray) -> dict[str, np.ndarray]:
    """Of values [in, out], zeros and scales [groups, out]."""
    return {
        "qweight": pack(values, 4, AWQ_ORDER),
        "qzeros": pack(zeros, 4, AWQ_ORDER),
        "scales": scales.astype(np.float16),
    }


def gptq_tensors(
    values: np.ndarray, zeros: np.ndarray, scales: np.ndarray, *, bits: int = 4, version: int = 1
) -> dict[str, np.ndarray]:
    """Of values [in, out], zeros and scales [groups, out]."""
    inputs = len(values)
    return {
        "qweight": np.ascontiguousarray(pack(values.T, bits).T),
        "qzeros": pack((zeros.astype(np.int64) - (version == 1)) % 2**bits, bits),
        "scales": scales.astype(np.float16),
        "g_idx": (np.arange(inputs) // (inputs // len(scales))).astype(np.int32),
    }


def random_numbers(
    seed: int, inputs: int, outputs: int, group: int, *, bits: int = 4, zero: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, zeros and scales as a quantiser gives them: each group uses its whole range."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 2**bits, (inputs, outputs))
    values[::group], values[1::group] = 0, 2**bits - 1
    shape = (inputs // group, outputs)
    zeros = random.integers(0, 2**bits, shape) if zero is None else np.full(shape, zero)
    scales = (random.uniform(0.2, 1, shape) / 300).astype(np.float16)
    return values, zeros, scales


def meant(values: np.ndarray, zeros: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The weights [out, in] in float32: scale · (value - zero)."""
    repeat = len(values) // len(scales)
    zeros, scales = (np.repeat(p, repeat, axis=0) for p in (zeros, scales.astype(np.float32)))
    return ((values - zeros).astype(np.float32) * scales).T


def write_packed(
    folder: Path,
    settings: Mapping[str, Any] | None,
    matrices: Mapping[str, Mapping[str, np.ndarray]],
    *,
    settings_file: str = "config.json",
) -> Path:
    """A model folder with the parts of each matrix ("model.layers.0.….w1": {"qweight": …})."""
    folder.mkdir(exist_ok=True)
    config: dict[str, Any] = {"model_type": "mixtral"}
    if settings is not None and settings_file == "config.json":
        config["quantization_config"] = dict(settings)
    elif settings is not None:
        (folder / settings_file).write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {f"{name}.{part}": data for name, parts in matrices.items() for part, data in parts.items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def block_errors(wanted: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Largest difference over largest weight of every block of up to 256 weights of a row, flat."""
    largest = block_maxima(wanted)
    differences = block_maxima(wanted.astype(np.float64) - got)
    return differences / np.where(largest > 0, largest, 1)


def block_maxima(matrix: np.ndarray) -> np.ndarray:
    """The largest magnitude of every block of up to 256 numbers of a row, flat."""
    rows, cols = matrix.shape
    return np.abs(np.pad(matrix, ((0, 0), (0, -cols % 256))).reshape(rows, -1, 256)).max(axis=2).reshape(-1)
