"""Text from clipboards, arguments and files, which need not be valid Unicode."""

from __future__ import annotations


def clean_text(text: str) -> str:
    """`text` with U+FFFD for halves of characters (lone surrogates): UTF-8 and tokenizers refuse them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
