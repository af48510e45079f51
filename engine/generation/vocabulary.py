"""The two kinds of tokenizer files: `tokenizer.json`, and sentencepiece's bare `tokenizer.model`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from engine.errors import DAMAGED, CheckpointError
from engine.generation.detokenizer import ByteFallbackStream, ByteLevelStream, SentencePieceStream, TextStream


class Vocabulary(Protocol):
    """Text to token ids, and ids to the pieces that a text stream takes."""

    size: int  # one more than the largest token id

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Token ids of `text`; `special` adds what the model expects around a text (such as a start token).

        Special tokens that are spelt out in the text are recognised either way.
        """

    def token(self, text: str) -> int | None:
        """The id of the token spelt exactly `text`, or None."""

    def piece(self, token: int) -> str | None:
        """The piece of `token`; None for special tokens and unknown ids, which have no text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens` at once, by the library itself; special tokens have none."""

    def stream(self, *, after_text: bool) -> TextStream:
        """A stream for one answer; `after_text` keeps its first space, because text stands before it."""


class JsonVocabulary:
    """A `tokenizer.json`, read by the tokenizers library. Raises CheckpointError if it cannot be used."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer  # here: importing the engine must stay quick

        try:
            text = path.read_text(encoding="utf-8")
            self._decoder = _decoder_kind(json.loads(text).get("decoder"))
        except (OSError, *DAMAGED) as error:
            raise unreadable(path, error) from error
        try:
            self._tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises plain Exception for a file it cannot use
            raise unreadable(path, error) from error
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = frozenset(token for token, entry in added.items() if entry.special)
        self.size = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Token ids of `text`, by the file's own rules."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        return ids

    def token(self, text: str) -> int | None:
        """The id of the token spelt exactly `text`, or None."""
        return self._tokenizer.token_to_id(text)

    def piece(self, token: int) -> str | None:
        """The piece of `token`; None for special tokens and unknown ids."""
        return None if token in self._special else self._tokenizer.id_to_token(token)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, special ones left out."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def stream(self, *, after_text: bool) -> TextStream:
        """A stream that does what the file's decoder does."""
        if self._decoder is None:
            return ByteLevelStream()
        return ByteFallbackStream(strip=0 if after_text else self._decoder)


class SentencePieceVocabulary:
    """A bare `tokenizer.model`, read by sentencepiece, with the tokens `added` on top (text → id).

    Text between two special tokens is encoded by itself, each time with sentencepiece's leading "▁".
    """

    def __init__(self, path: Path, added: Mapping[str, int]) -> None:
        from sentencepiece import SentencePieceProcessor  # here: importing the engine must stay quick

        try:
            self._processor = SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise unreadable(path, error) from error
        count: int = self._processor.vocab_size()
        control = [token for token in range(count) if self._processor.is_control(token)]
        self._special = {self._processor.id_to_piece(token): token for token in control}
        self._special.update(added)
        self._textless = frozenset((*self._special.values(), self._processor.unk_id()))
        self.size = 1 + max((count - 1, *added.values()))
        longest_first = sorted(self._special, key=len, reverse=True)
        self._split = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Token ids of `text`, after the start token if `special`."""
        ids: list[int] = [self._processor.bos_id()] if special and self._processor.bos_id() >= 0 else []
        for part in self._split.split(text):
            if part in self._special:
                ids.append(self._special[part])
            elif part:
                ids.extend(self._processor.encode(part))
        return ids

    def token(self, text: str) -> int | None:
        """The id of the token spelt exactly `text`, or None."""
        if text in self._special:
            return self._special[text]
        token: int = self._processor.piece_to_id(text)
        return None if token == self._processor.unk_id() else token

    def piece(self, token: int) -> str | None:
        """The piece of `token`; None for control and added tokens and for unknown ids."""
        if token in self._textless or not 0 <= token < self._processor.vocab_size():
            return None
        piece: str = self._processor.id_to_piece(token)
        return piece

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, control and added ones left out."""
        text: str = self._processor.decode([token for token in tokens if self.piece(token) is not None])
        return text

    def stream(self, *, after_text: bool) -> TextStream:
        """A stream that does what sentencepiece's decoding does."""
        return SentencePieceStream(strip=not after_text)


def _decoder_kind(decoder: Any) -> int | None:
    """None for a byte-level decoder, else how many leading spaces a byte-fallback one strips.

    Raises CheckpointError for decoders of other families of models, which no stream is written for.
    """
    steps: list[dict[str, Any]] = [{}]
    if isinstance(decoder, dict):
        steps = decoder.get("decoders", [decoder])
    kinds = [step.get("type") for step in steps]
    if kinds == ["ByteLevel"]:
        return None
    if kinds[:3] == ["Replace", "ByteFallback", "Fuse"]:
        replaced = (steps[0].get("pattern"), steps[0].get("content"))
        no_strip: dict[str, Any] = {"content": " ", "start": 0, "stop": 0}
        strip = steps[3] if kinds[3:] == ["Strip"] else no_strip
        plain = strip.get("content") == " " and strip.get("stop") == 0 and len(kinds) <= 4
        if replaced == ({"String": "▁"}, " ") and plain:
            return int(strip["start"])
    raise CheckpointError(
        "This model's tokenizer is of a kind this program does not know.",
        why=f"Its decoder is {', '.join(map(str, kinds))}; byte-level and byte-fallback ones are supported.",
        action="Choose a Mixtral-style model with its original tokenizer.",
    )


def unreadable(path: Path, error: Exception) -> CheckpointError:
    """The refusal of a tokenizer's file that is damaged."""
    return CheckpointError(
        f"{path.name} cannot be read.",
        why=f"{path}: {error}",
        action="The file may be damaged or incomplete: get it again.",
    )
