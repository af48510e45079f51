"""The starter model's tokenizer files, made from the vocabulary, merges and chat template in a GGUF file."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from engine.checkpoint.gguf import GgufFile
from engine.errors import CheckpointError
from engine.starter.jsontext import to_json

_CONTROL, _USER_DEFINED = 3, 4  # llama.cpp's token types; the others are ordinary or unused
_MODEL, _SPLITTING = "gpt2", "smollm"  # byte-level BPE; digits one by one, then GPT-2's pattern


def build_tokenizer(file: GgufFile) -> Tokenizer:
    """The tokenizer as the `tokenizers` library runs it; `CheckpointError` if the file has another kind."""
    for key, known in (("tokenizer.ggml.model", _MODEL), ("tokenizer.ggml.pre", _SPLITTING)):
        found = file.get(key, str)
        if found != known:
            raise CheckpointError(
                f"The tokenizer in {file.path.name} is of a kind this program does not convert.",
                why=f"Its entry {key} is “{found}”; “{known}” is known.",
                action="Use the file that the starter model's recipe names.",
            )
    tokens = file.get_list("tokenizer.ggml.tokens", str)
    kinds = file.get_list("tokenizer.ggml.token_type", int)
    merges = [tuple(merge.split(" ")) for merge in file.get_list("tokenizer.ggml.merges", str)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens) or len(kinds) != len(tokens) or any(len(m) != 2 for m in merges):
        raise CheckpointError(
            f"The tokenizer in {file.path.name} is damaged.",
            why="Its lists of tokens, token types and merges do not belong together.",
            action="Download the file again.",
        )
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[(m[0], m[1]) for m in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(tokens, kinds, strict=True):
        if kind in (_CONTROL, _USER_DEFINED):
            special = kind == _CONTROL
            tokenizer.add_tokens([AddedToken(token, special=special, normalized=False)])
    return tokenizer


def tokenizer_files(file: GgufFile, tokenizer: Tokenizer) -> dict[str, str]:
    """Name and text of each tokenizer file of a Hugging Face model folder."""
    return {
        "tokenizer.json": tokenizer.to_str(pretty=False),
        "tokenizer_config.json": to_json(_tokenizer_config(file)),
        "chat_template.jinja": file.get("tokenizer.chat_template", str),
    }


def special_ids(file: GgufFile) -> dict[str, int]:
    """The numbers of the special tokens, by the names that model and generation configurations use."""
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    return {
        f"{name}_token_id": file.get(f"tokenizer.ggml.{key}_token_id", int) for name, key in names.items()
    }


def _tokenizer_config(file: GgufFile) -> dict[str, object]:
    tokens = file.get_list("tokenizer.ggml.tokens", str)
    special = {name.removesuffix("_id"): tokens[number] for name, number in special_ids(file).items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": file.get("tokenizer.ggml.add_bos_token", bool),
        "clean_up_tokenization_spaces": False,
        "model_max_length": file.get("llama.context_length", int),
        "unk_token": tokens[file.get("tokenizer.ggml.unknown_token_id", int)],
        **special,
    }
