"""Which settings a search means: by label, help, other words for it, and the page's name. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.text import fold


@dataclass(frozen=True)
class Entry:
    """Something that can be found: the words on it, and where it is (the page's number, its key there)."""

    page: int
    page_name: str
    key: str
    label: str
    help: str = ""
    synonyms: str = ""


def find(entries: Sequence[Entry], query: str) -> list[Entry]:
    """The entries that have every word of `query`, best first; none for an empty query.

    A match in the label comes before one in the other words for it, and that before one in the help. Three
    letters may stand anywhere ("prompt" in the German "Systemprompt"), one or two only at a word's beginning.
    """
    words = fold(query).split()
    if not words:
        return []
    ranked = [(rank, number) for number, entry in enumerate(entries) if (rank := _rank(entry, words)) > 0]
    return [entries[number] for _, number in sorted(ranked, key=lambda pair: (-pair[0], pair[1]))]


def _rank(entry: Entry, words: Sequence[str]) -> int:
    """0 if a word is not found; more the nearer the words are to the entry's name."""
    texts = ((8, entry.label), (3, entry.synonyms), (2, entry.help), (1, entry.page_name))
    total = 0
    for word in words:
        best = max((weight for weight, text in texts if _contains(fold(text), word)), default=0)
        if best == 0:
            return 0
        total += best
    return total


def _contains(text: str, word: str) -> bool:
    if len(word) >= 3 or not word.isascii():
        return word in text
    return any(part.startswith(word) for part in text.replace("-", " ").split())
