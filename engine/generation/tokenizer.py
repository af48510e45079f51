"""A model's tokenizer: text and conversations to token ids, and ids back to text while they arrive."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.checkpoint.inspect import ModelInfo
from engine.checkpoint.reader import read_optional_json
from engine.errors import CheckpointError, GenerationError
from engine.generation.chat_template import MISTRAL_INSTRUCT, ChatTemplate, find_template
from engine.generation.detokenizer import TextStream
from engine.generation.vocabulary import JsonVocabulary, SentencePieceVocabulary, Vocabulary, unreadable
from engine.params import Message
from engine.text import clean_text

_SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token")


class TokenStream:
    """One answer's text while its tokens arrive; in all it equals `Tokenizer.decode` of the same tokens."""

    def __init__(self, vocabulary: Vocabulary, *, after_text: bool) -> None:
        self._vocabulary = vocabulary
        self._stream: TextStream = vocabulary.stream(after_text=after_text)

    def push(self, token: int) -> str:
        """Take the next token; return the text that is now certain, in whole characters."""
        piece = self._vocabulary.piece(token)
        return "" if piece is None else self._stream.push(piece)

    def flush(self) -> str:
        """Return what was held back, at the end of the answer."""
        return self._stream.flush()

    def fork(self) -> TokenStream:
        """A second stream that goes on from here, for another continuation of the same text."""
        twin = copy.copy(self)
        twin._stream = copy.deepcopy(self._stream)
        return twin


class Tokenizer:
    """Encodes texts and conversations for one model. Loaded by `Tokenizer.load`.

    `size` is one more than the largest token id, `eos_ids` are the tokens that end an answer, `notes`
    sentences for the user.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        template: ChatTemplate | None,
        eos_ids: frozenset[int],
        notes: tuple[str, ...],
    ) -> None:
        self._vocabulary = vocabulary
        self._template = template
        self.size = vocabulary.size
        self.eos_ids = eos_ids
        self.notes = notes

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Read the tokenizer in a model's folder: `tokenizer.json`, or else a bare `tokenizer.model`.

        A folder of the Mistral family (its vocabulary has <s>, </s> and bytes such as <0x0A>) that comes
        without a chat template gets Mistral's instruction format, and a note says so; any other without one
        can only continue raw text. Raises CheckpointError if a file is missing or damaged.
        """
        config = read_optional_json(folder / "tokenizer_config.json")
        vocabulary = _vocabulary(folder)
        special = _special_tokens(config, read_optional_json(folder / "special_tokens_map.json"))
        notes: tuple[str, ...] = ()
        source = find_template(folder, config)
        if source is None and all(vocabulary.token(text) is not None for text in ("<s>", "</s>", "<0x0A>")):
            source = MISTRAL_INSTRUCT
            special = {**special, "bos_token": "<s>", "eos_token": "</s>"}
            notes = ("This model's folder has no chat template: Mistral's instruction format is used.",)
        template = None if source is None else ChatTemplate(source, special)
        eos = vocabulary.token(special.get("eos_token", "</s>"))
        return cls(vocabulary, template, frozenset(() if eos is None else (eos,)), notes)

    @classmethod
    def of_model(cls, info: ModelInfo) -> Tokenizer:
        """`load` for a model that has been inspected; CheckpointError too if the two do not fit together."""
        tokenizer = cls.load(info.path)
        if tokenizer.size > info.config.vocab_size:
            raise CheckpointError(
                "The tokenizer does not belong to this model.",
                why=f"It has {tokenizer.size} tokens, the model knows {info.config.vocab_size}.",
                action="Get tokenizer.json again from where the model came from.",
            )
        return tokenizer

    @property
    def can_chat(self) -> bool:
        """Whether the form of a conversation is known; without it the model only continues raw text."""
        return self._template is not None

    def encode(self, text: str) -> list[int]:
        """Token ids of `text` as the start of what the model reads (with its start token, if it has one)."""
        return self._vocabulary.encode(clean_text(text), special=True)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation, ready for the model's answer.

        Where the template refuses the system role, the system text opens the first user message. Raises
        GenerationError without messages, without a chat template, or if the template refuses the
        conversation.
        """
        if not messages:
            raise GenerationError("There is nothing to answer.", action="Write a message first.")
        if self._template is None:
            raise GenerationError(
                "This model cannot chat.",
                why="Its folder has no chat template, so the form of a conversation is not known.",
                action="Choose an instruct (chat) model, or continue plain text (`--raw`).",
            )
        return self._vocabulary.encode(clean_text(self._template.render(messages)), special=False)

    def count(self, text: str) -> int:
        """How many tokens `text` is by itself."""
        return len(self._vocabulary.encode(clean_text(text), special=False))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`; special tokens have none."""
        return self._vocabulary.decode(tokens)

    def stream(self, *, after_text: bool = False) -> TokenStream:
        """Text of one answer, token by token. `after_text`: it continues a text, so its first space stays."""
        return TokenStream(self._vocabulary, after_text=after_text)


def _vocabulary(folder: Path) -> Vocabulary:
    if (folder / "tokenizer.json").is_file():
        return JsonVocabulary(folder / "tokenizer.json")
    if (folder / "tokenizer.model").is_file():
        return SentencePieceVocabulary(
            folder / "tokenizer.model", _added_tokens(folder / "added_tokens.json")
        )
    raise CheckpointError(
        "The model's tokenizer is missing.",
        why=f"Neither tokenizer.json nor tokenizer.model is in {folder}.",
        action="Copy one of these files from where the model came from.",
    )


def _added_tokens(file: Path) -> dict[str, int]:
    """The tokens on top of a bare `tokenizer.model`, text to id; none without the file."""
    added = read_optional_json(file)
    for text, token in added.items():
        if type(token) is not int or token < 0:
            raise unreadable(file, ValueError(f"the token {text!r} has the number {token!r}"))
    return added


def _special_tokens(*configs: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens' texts by name; earlier files win. An entry is a text or {"content": text}."""
    found: dict[str, str] = {}
    for config in configs:
        for name in _SPECIAL_NAMES:
            entry = config.get(name)
            text = entry.get("content") if isinstance(entry, dict) else entry
            if isinstance(text, str):
                found.setdefault(name, text)
    return found
