"""The lossless conversion of the dense model into a Mixtral checkpoint of 8 experts, 2 of them per token.

A layer's FFN neurons are cut into halves A and B. Experts 2p and 2p + 1 (p = 0 … 3) are copies of A and B
with w2 doubled, and the two router rows of a pair are equal. The two largest of eight such logits are one
whole pair, each with weight ½, and ½ · 2 · A + ½ · 2 · B is the dense FFN. Doubling is exact in bf16.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.checkpoint.gguf import GgufFile
from engine.checkpoint.reader import INDEX_FILE
from engine.files import write_atomically
from engine.models import tensors
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.starter import dense
from engine.starter.configs import EXPERTS, PAIRS, config_files
from engine.starter.dense import DenseConfig, DenseLayer
from engine.starter.folder import new_folder
from engine.starter.recipe import Recipe, calibration_texts, load_recipe
from engine.starter.router import pair_rows
from engine.starter.shards import ShardWriter
from engine.starter.tokenizer import build_tokenizer, tokenizer_files

Expert = tuple[Tensor, Tensor, Tensor]  # w1 (gate), w2 (down), w3 (up)

_LAYERS_PER_SHARD = 5  # about 120 MB; what is in memory at a time


def convert(
    gguf: Path,
    out: Path,
    *,
    recipe: Recipe | None = None,
    expert_noise: float = 0.0,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
) -> None:
    """Write the Mixtral model made from the file `gguf` as the folder `out`, replacing it if it exists.

    The folder appears under its name only when it is complete. `expert_noise` > 0 makes a variant for tests:
    every expert's weights get Gaussian noise of that size relative to their root mean square, different for
    each expert, so that running a wrong expert shows. Raises `CheckpointError`, `FileError`, `Cancelled`.
    """
    recipe = recipe or load_recipe()
    cancel = cancel or CancelToken()
    with GgufFile(gguf) as file, new_folder(out) as work:
        config = DenseConfig.of(file)
        tokenizer = build_tokenizer(file)
        writer = ShardWriter(work, -(-config.layers // _LAYERS_PER_SHARD))
        writer.add({tensors.EMBEDDINGS: dense.read_bf16(file, "token_embd.weight")})
        layers = _dense_layers(file, config, _calibration(tokenizer), recipe)
        for index, (layer, router) in enumerate(layers):
            cancel.raise_if_cancelled()
            experts = _experts(layer)
            if expert_noise > 0:
                random = np.random.default_rng([recipe.router.seed, index, 1])
                experts = [_noisy_expert(expert, expert_noise, random) for expert in experts]
            writer.add(_named(index, layer, router, experts))
            last = index + 1 == config.layers
            if last:
                writer.add({tensors.FINAL_NORM: dense.read_bf16(file, "output_norm.weight")})
            if last or (index + 1) % _LAYERS_PER_SHARD == 0:
                writer.end_shard()
            progress(Progress("Converting the starter model", index + 1, config.layers, "layers"))
        texts = {
            **tokenizer_files(file, tokenizer),
            **config_files(file, config, recipe.revision),
            INDEX_FILE: writer.index(),
        }
        for name, text in texts.items():
            write_atomically(work / name, text)


def _calibration(tokenizer: Tokenizer) -> list[list[int]]:
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in calibration_texts()]


def _dense_layers(
    file: GgufFile, config: DenseConfig, prompts: list[list[int]], recipe: Recipe
) -> Iterator[tuple[DenseLayer, Tensor]]:
    """Each layer with its pairs' router rows, while the calibration text runs through the layers so far."""
    embeddings = dense.read_bf16(file, "token_embd.weight")
    sequences = [embeddings[torch.tensor(prompt)].float() for prompt in prompts]
    del embeddings
    for index in range(config.layers):
        layer = dense.read_layer(file, config, index)
        attended = torch.cat([dense.attend(layer, config, x) for x in sequences])
        hidden = dense.rms_norm(attended, layer.post_norm, config.norm_eps)
        yield layer, pair_rows(hidden, recipe.router, index)
        outputs = attended + dense.feed_forward(layer, hidden)
        sequences = list(torch.split(outputs, [len(x) for x in sequences]))


def _experts(layer: DenseLayer) -> list[Expert]:
    """The eight experts: four times the two halves of the FFN's neurons."""
    gates, downs, ups = layer.gate.chunk(2), layer.down.chunk(2, dim=1), layer.up.chunk(2)
    halves = [(w1, 2 * w2, w3) for w1, w2, w3 in zip(gates, downs, ups, strict=True)]
    return halves * PAIRS


def _noisy_expert(expert: Expert, noise: float, random: np.random.Generator) -> Expert:
    w1, w2, w3 = expert
    return _noisy(w1, noise, random), _noisy(w2, noise, random), _noisy(w3, noise, random)


def _noisy(matrix: Tensor, noise: float, random: np.random.Generator) -> Tensor:
    scale = noise * matrix.float().square().mean().sqrt()
    draw = torch.from_numpy(random.standard_normal(matrix.shape, dtype=np.float32))
    return (matrix.float() + scale * draw).to(torch.bfloat16)


def _named(index: int, layer: DenseLayer, router: Tensor, experts: list[Expert]) -> dict[str, Tensor]:
    """A layer's tensors under Mixtral's names."""
    named = {
        tensors.layer(index, "input_layernorm"): layer.input_norm,
        tensors.layer(index, "self_attn.q_proj"): layer.q,
        tensors.layer(index, "self_attn.k_proj"): layer.k,
        tensors.layer(index, "self_attn.v_proj"): layer.v,
        tensors.layer(index, "self_attn.o_proj"): layer.o,
        tensors.layer(index, "post_attention_layernorm"): layer.post_norm,
        tensors.layer(index, "block_sparse_moe.gate"): router.repeat_interleave(EXPERTS // PAIRS, dim=0),
    }
    for number, matrices in enumerate(experts):
        for name, matrix in zip(("w1", "w2", "w3"), matrices, strict=True):
            named[tensors.expert(index, number, name)] = matrix
    return named
