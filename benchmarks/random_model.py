"""Write a Mixtral model of random weights, for timing where no real one can be fetched.

    python benchmarks/random_model.py /tmp/model [--shape mixtral|starter] [--layers N]

Sizes and times are those of the real shape; what it says is noise. One token is one byte.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run from a checkout without installing it

from engine.known_models import MIXTRAL_8X7B, STARTER  # noqa: E402
from engine.models import tensors  # noqa: E402
from engine.models.config import MixtralConfig  # noqa: E402

_POOL = 1 << 25  # random numbers that all weights are cut from, at shifting places


def main() -> int:
    arguments = _arguments()
    config = {"mixtral": MIXTRAL_8X7B, "starter": STARTER}[arguments.shape]
    if arguments.layers is not None:
        config = replace(config, num_layers=arguments.layers)
    arguments.folder.mkdir(parents=True)
    (arguments.folder / "config.json").write_text(json.dumps(_raw(config), indent=1))
    _write_tokenizer(arguments.folder)
    _write_weights(arguments.folder, config)
    return 0


def _raw(config: MixtralConfig) -> dict[str, object]:
    return {
        "model_type": "mixtral",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "num_local_experts": config.num_experts,
        "num_experts_per_tok": config.top_k,
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "sliding_window": config.sliding_window,
        "tie_word_embeddings": config.tie_word_embeddings,
    }


def _write_weights(folder: Path, config: MixtralConfig) -> None:
    """One file per layer, and one for the rest."""
    pool = torch.randn(_POOL, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    files: dict[str, dict[str, torch.Size]] = {}
    for name, shape in tensors.expected(config):
        parts = name.split(".")
        layer = f"layer-{int(parts[2]):02}" if parts[:2] == ["model", "layers"] else "rest"
        files.setdefault(f"model-{layer}.safetensors", {})[name] = torch.Size(shape)
    weight_map: dict[str, str] = {}
    for file, shapes in files.items():
        weights = {
            name: _cut(pool, shape, len(weight_map) + i) for i, (name, shape) in enumerate(shapes.items())
        }
        save_file(weights, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(weights, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def _cut(pool: torch.Tensor, shape: torch.Size, number: int) -> torch.Tensor:
    """Numbers of a size that keeps activations finite; norms are one."""
    if len(shape) == 1:
        return torch.ones(shape, dtype=torch.bfloat16)
    count = shape.numel()
    shifted = pool.roll(7919 * number)
    repeated = shifted.repeat(-(-count // len(pool)))[:count]
    return (repeated / shape[1] ** 0.5).view(shape)


def _write_tokenizer(folder: Path) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="is made")
    parser.add_argument("--shape", choices=("mixtral", "starter"), default="mixtral")
    parser.add_argument("--layers", type=int, help="fewer layers than the real model")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
