"""Tokens to text while they arrive: whole characters only, and in all exactly what decoding at once gives.

Every stream takes one token's *piece* (its string in the vocabulary) at a time and costs time in proportion
to that piece, not to the answer so far. Two families of vocabulary exist: byte-level BPE, whose pieces
spell bytes in a 256-letter alphabet, and sentencepiece with byte fallback, whose pieces are text with "▁"
for a space and "<0xE2>" for a byte that no piece covers.
"""

from __future__ import annotations

import codecs
from typing import Protocol

SPACE_MARK = "▁"  # sentencepiece writes spaces as U+2581
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class TextStream(Protocol):
    """One answer's text under construction."""

    def push(self, piece: str) -> str:
        """Take the next token's piece; return the text that is now certain (mostly its own)."""

    def flush(self) -> str:
        """Return what was held back, at the end of the answer. The stream is then spent."""


class ByteLevelStream:
    """Byte-level BPE (GPT-2's alphabet): bytes are collected until they make characters.

    Equals decoding all bytes at once as UTF-8 with U+FFFD for each maximal invalid part.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, piece: str) -> str:
        """Take the next token's piece; return the characters completed by it."""
        return self._decoder.decode(piece_bytes(piece))

    def flush(self) -> str:
        """Return U+FFFD if the answer ended inside a character."""
        return self._decoder.decode(b"", final=True)


class ByteFallbackStream:
    """Sentencepiece with byte fallback as a `tokenizer.json` decodes it (Replace, ByteFallback, Fuse, Strip).

    Those rules look at a run of byte tokens as a whole: valid UTF-8 becomes text, anything else one U+FFFD
    per byte. So a run is held back until a token of another kind ends it. `strip` spaces at the start of
    the text are dropped: the first word's "▁" is not a space.
    """

    def __init__(self, strip: int = 1) -> None:
        self._run = bytearray()
        self._strip = strip

    def push(self, piece: str) -> str:
        """Take the next token's piece; return its text and that of the byte run it ended, if any."""
        byte = byte_of(piece)
        if byte is not None:
            self._run.append(byte)
            return ""
        return self._end_run() + self._stripped(piece.replace(SPACE_MARK, " "))

    def flush(self) -> str:
        """Return the text of the byte run that ends the answer."""
        return self._end_run()

    def _end_run(self) -> str:
        if not self._run:
            return ""
        try:
            text = self._run.decode("utf-8")
        except UnicodeDecodeError:
            text = REPLACEMENT * len(self._run)
        self._run.clear()
        return self._stripped(text)

    def _stripped(self, text: str) -> str:
        while text and self._strip:
            if text[0] != " ":
                self._strip = 0
            else:
                self._strip -= 1
                text = text[1:]
        return text


class SentencePieceStream:
    """Sentencepiece's own decoding (a bare `tokenizer.model`): valid bytes survive invalid ones.

    An invalid byte becomes one U+FFFD. The first piece loses one leading "▁" if `strip`; a space that is
    spelt as a byte token stays.
    """

    def __init__(self, strip: bool = True) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(_EACH_BYTE)
        self._strip = strip

    def push(self, piece: str) -> str:
        """Take the next token's piece; return its text, or the characters that its byte completed."""
        byte = byte_of(piece)
        first, self._strip = self._strip, False
        if byte is not None:
            return self._decoder.decode(bytes((byte,)))
        held = self.flush()
        if first and piece.startswith(SPACE_MARK):
            piece = piece[1:]
        return held + piece.replace(SPACE_MARK, " ")

    def flush(self) -> str:
        """Return one U+FFFD per byte if a byte run ended inside a character."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text


def byte_of(piece: str) -> int | None:
    """The value of a byte-fallback piece such as "<0x0A>", or None for any other piece."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        digits = piece[3:5]
        if all(digit in "0123456789abcdefABCDEF" for digit in digits):
            return int(digits, 16)
    return None


def piece_bytes(piece: str) -> bytes:
    """The bytes that a byte-level piece spells; a piece with letters outside the alphabet is plain text."""
    try:
        return bytes(_ALPHABET[letter] for letter in piece)
    except KeyError:
        return piece.encode("utf-8")


def _byte_level_alphabet() -> dict[str, int]:
    """Letter → byte of GPT-2's alphabet: printable Latin-1 stands for itself, the rest from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    alphabet = {chr(byte): byte for byte in plain}
    alphabet.update({chr(0x100 + place): byte for place, byte in enumerate(others)})
    return alphabet


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return REPLACEMENT * (error.end - error.start), error.end


_ALPHABET = _byte_level_alphabet()
_EACH_BYTE = "fiddler.replace-each-byte"
codecs.register_error(_EACH_BYTE, _replace_each_byte)
