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
