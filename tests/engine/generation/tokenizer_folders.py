"""Tokenizer folders for tests: a small trained byte-level one, and Mistral's real one in both formats."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CHATML_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TRAINING_TEXT = [
    "The capital of France is Paris. The quick brown fox jumps over the lazy dog.",
    "Was ist das? Žluťoučký kůň. Ωμέγα и мир 世界 こんにちは 🙂🙃 é́ naïve façade",
    "def f(x):\n    return [y ** 2 for y in x if y > 0]\n\n",
]


def byte_level_folder(folder: Path, *, template: str | None = CHATML) -> Path:
    """A byte-level BPE tokenizer (as SmolLM2's, but small) with ChatML tokens, written into `folder`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=CHATML_TOKENS, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(TRAINING_TEXT, trainer)
    tokenizer.add_tokens([AddedToken("<tool>", special=False), AddedToken("→ 世", special=False)])
    return save(tokenizer, folder, {"eos_token": "<|im_end|>", "chat_template": template})


def mistral_model_file(folder: Path) -> Path:
    """Mistral's `tokenizer.model.v1`, out of the mistral-common wheel, as `tokenizer.model` in `folder`.

    `make test` fetches the wheel into `.venv/share/fiddler/`; FIDDLER_MISTRAL_WHEEL names another one. Where
    nothing was ever fetched (`make test-gpu` needs no network), the tests with it are skipped.
    """
    named = os.environ.get("FIDDLER_MISTRAL_WHEEL")
    fetched = Path(__file__).parents[3] / ".venv/share/fiddler"
    if not named and not fetched.exists():
        pytest.skip("mistral-common's wheel was not fetched: run `make test`, or set FIDDLER_MISTRAL_WHEEL")
    wheel = Path(named) if named else next(fetched.glob("mistral_common-*.whl"), None)
    assert wheel is not None, (
        "mistral-common's wheel is missing: run `make test`, or set FIDDLER_MISTRAL_WHEEL"
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tokenizer.model"
    with zipfile.ZipFile(wheel) as archive:
        path.write_bytes(archive.read("mistral_common/data/tokenizer.model.v1"))
    return path


def mistral_json_folder(folder: Path, model_file: Path) -> Path:
    """The same vocabulary as a `tokenizer.json` of the kind that Mixtral was published with."""
    processor = SentencePieceProcessor(model_file=str(model_file))
    pieces = [processor.id_to_piece(token) for token in range(processor.vocab_size())]
    vocabulary = {piece: token for token, piece in enumerate(pieces)}
    merges = []
    for piece in pieces:  # a piece is made of any two shorter pieces; better (lower) ids merge first
        halves = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        made = [
            (vocabulary[a], vocabulary[b], a, b) for a, b in halves if a in vocabulary and b in vocabulary
        ]
        merges += [(vocabulary[piece], a, b) for _, _, a, b in sorted(made)]
    model = models.BPE(
        vocab=vocabulary,
        merges=[(a, b) for _, a, b in sorted(merges, key=lambda merge: merge[0])],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return save(tokenizer, folder, {"bos_token": "<s>", "eos_token": {"content": "</s>"}})


def save(tokenizer: Tokenizer, folder: Path, config: dict[str, object]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    kept = {"tokenizer_class": "PreTrainedTokenizerFast"} | {k: v for k, v in config.items() if v is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept), encoding="utf-8")
    return folder
