"""The conversion on a small random model: what is written, exactness, atomicity, cancelling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, LlamaForCausalLM, MixtralForCausalLM

from engine.checkpoint.inspect import inspect_model
from engine.errors import Cancelled, CheckpointError, FileError
from engine.progress import CancelToken, Progress
from engine.starter.convert import convert
from tests.engine.starter.tiny import SPECIAL, TEMPLATE, tiny_llama, write_gguf

LAYERS = 6  # two shards
FILES = {
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
}


@pytest.fixture(scope="module")
def dense() -> LlamaForCausalLM:
    return tiny_llama(LAYERS)


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory, dense: LlamaForCausalLM) -> Path:
    return write_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf", dense)


@pytest.fixture(scope="module")
def steps() -> list[Progress]:
    """What the conversion of `converted` reported."""
    return []


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory, gguf_file: Path, steps: list[Progress]) -> Path:
    out = tmp_path_factory.mktemp("converted") / "model"
    convert(gguf_file, out, progress=steps.append)
    return out


@torch.inference_mode()
def test_transformers_loads_it_and_finds_the_dense_model(converted: Path, dense: LlamaForCausalLM) -> None:
    mixtral = MixtralForCausalLM.from_pretrained(
        converted, dtype=torch.float32, experts_implementation="eager"
    ).eval()
    ids = torch.arange(dense.config.vocab_size)[None]
    expected, found = dense(ids).logits[0], mixtral(ids, use_cache=False).logits[0]
    assert ((found - expected).norm(dim=-1) / expected.norm(dim=-1)).max() <= 1e-5


def test_the_folder_is_complete_and_marked(converted: Path) -> None:
    assert {path.name for path in converted.iterdir()} == FILES
    info = inspect_model(converted)
    assert info.is_starter
    assert (info.config.num_experts, info.config.top_k, info.config.intermediate_size) == (8, 2, 48)
    assert info.config.rms_norm_eps == 1e-5
    index = json.loads((converted / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == info.total_bytes
    assert [path.name for path in converted.parent.iterdir()] == ["model"]


def test_generation_is_greedy_and_ends_with_the_turn_or_the_text(converted: Path) -> None:
    generation = json.loads((converted / "generation_config.json").read_text())
    assert generation["do_sample"] is False
    assert generation["eos_token_id"] == [SPECIAL.index("<|im_end|>"), SPECIAL.index("<|endoftext|>")]
    tokenizer = AutoTokenizer.from_pretrained(converted)
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert (tokenizer.pad_token, tokenizer.unk_token) == ("<|im_end|>", "<|endoftext|>")
    assert tokenizer.chat_template == TEMPLATE


@pytest.mark.usefixtures("converted")
def test_progress_counts_layers(steps: list[Progress]) -> None:
    assert [step.done for step in steps] == list(range(1, LAYERS + 1))
    assert {step.total for step in steps} == {LAYERS}


def test_cancelling_leaves_nothing_and_the_old_model_stays(
    converted: Path, gguf_file: Path, tmp_path: Path
) -> None:
    old = tmp_path / "model"
    old.mkdir()
    (old / "config.json").write_text("old")
    token = CancelToken()
    with pytest.raises(Cancelled):
        convert(gguf_file, old, progress=lambda _: token.cancel(), cancel=token)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (old / "config.json").read_text() == "old"
    convert(gguf_file, old)
    for name in FILES:  # the same file gives the same model
        assert (old / name).read_bytes() == (converted / name).read_bytes()
    assert {path.name for path in old.iterdir()} == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_cannot_be_made_is_an_error(gguf_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match="model"):
        convert(gguf_file, tmp_path / "file" / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "qwen2"}, "architecture qwen2"),
        ({"pre": "llama-bpe"}, r"tokenizer\.ggml\.pre is “llama-bpe”"),
        ({"tokenizer": "llama"}, r"tokenizer\.ggml\.model is “llama”"),
        ({"kinds": [1, 1]}, "do not belong together"),
        ({"tokens": ["a"] * 263}, "do not belong together"),
    ],
)
def test_other_models_are_refused(
    tmp_path: Path, dense: LlamaForCausalLM, changes: dict[str, object], message: str
) -> None:
    path = write_gguf(tmp_path / "other.gguf", dense, **changes)
    with pytest.raises(CheckpointError, match=message):
        convert(path, tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["other.gguf"]
