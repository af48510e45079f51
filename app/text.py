"""Plain text that comes from people and clipboards, as titles are kept and texts compared."""

from __future__ import annotations

import unicodedata

from engine.text import clean_text


def one_line(text: str) -> str:
    """`text` without line breaks and runs of spaces, as a title is kept."""
    return " ".join(clean_text(text).split())


def shortened(text: str, length: int) -> str:
    """`text`, cut with an ellipsis where it has more than `length` characters."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def fold(text: str) -> str:
    """`text` without differences of case and of Unicode form, for comparing."""
    return unicodedata.normalize("NFKC", text).casefold()
