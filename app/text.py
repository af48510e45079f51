"""Small helpers for plain text that comes from people and clipboards."""

from __future__ import annotations

import unicodedata


def clean_text(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD: clipboards carry them, UTF-8 cannot."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def one_line(text: str) -> str:
    """`text` without line breaks and runs of spaces, as a title is kept."""
    return " ".join(clean_text(text).split())


def fold(text: str) -> str:
    """`text` without differences of case and of Unicode form, for comparing."""
    return unicodedata.normalize("NFKC", text).casefold()


def title_from(text: str, length: int = 60) -> str:
    """A title for a chat that begins with `text`: its first line with words in it, cut between words."""
    lines = (one_line(line.lstrip("#>*-` ")) for line in text.splitlines())
    line = next((line for line in lines if any(character.isalnum() for character in line)), one_line(text))
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    head, space, _ = cut.rpartition(" ")
    # Scripts without spaces, and single long words, are cut where the length ends.
    return (head if space and len(head) > length // 2 else cut).rstrip(" ,;:.–-") + "…"
