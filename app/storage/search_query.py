"""What a search means, and the passage that shows why a text was found. Pure.

Words are sought in any order, each anywhere in a text, also inside of words; “several words” in quotation
marks are sought as they stand. Case, Unicode form and the width of East Asian letters make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.text import fold

PREVIEW_CHARACTERS = 160
INDEXED_CHARACTERS = 3  # the index knows every run of three characters
_MOST_TERMS = 16
_BEFORE_MATCH = 24  # characters of context before a match in its snippet
_TERM = re.compile(r'["“”„]([^"“”„]*)["“”„]?|([^\s"“”„]+)')


@dataclass(frozen=True)
class Query:
    """Folded terms that must all be there; none: everything is found."""

    terms: tuple[str, ...]

    @property
    def indexed(self) -> tuple[str, ...]:
        """The terms that the index can look up."""
        return tuple(term for term in self.terms if len(term) >= INDEXED_CHARACTERS)

    @property
    def short(self) -> tuple[str, ...]:
        """The terms of one or two characters: often whole words in Chinese."""
        return tuple(term for term in self.terms if len(term) < INDEXED_CHARACTERS)

    def match(self) -> str:
        """The indexed terms as FTS5's MATCH takes them: each a phrase, whatever signs are in it."""
        return " AND ".join('"' + term.replace('"', '""') + '"' for term in self.indexed)

    def finds(self, folded: str) -> bool:
        """Whether all terms are in a folded text."""
        return all(term in folded for term in self.terms)


def parse(text: str) -> Query:
    """Read what was typed into the search field."""
    found = (fold(quoted or word).strip() for quoted, word in _TERM.findall(text))
    return Query(tuple(dict.fromkeys(term for term in found if term))[:_MOST_TERMS])


def snippet(text: str, query: Query, length: int = PREVIEW_CHARACTERS) -> str:
    """About `length` characters of `text` on one line, around the first place where a term is."""
    folded = fold(text)
    places = [place for term in query.terms if (place := folded.find(term)) >= 0]
    # Folding can change the length of a text; the place is then estimated, the snippet still near.
    place = min(places, default=0) * len(text) // max(1, len(folded))
    start = max(place - _BEFORE_MATCH, 0)
    piece = " ".join(text[start : start + 2 * length].split())
    return ("…" if start else "") + shorten(piece, length)


def shorten(text: str, length: int = PREVIEW_CHARACTERS) -> str:
    """`text` cut to `length` characters, the last a “…”."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def spans(text: str, terms: Sequence[str]) -> list[tuple[int, int]]:
    """Where the terms are in a short `text`: (start, length) in order, without overlaps."""
    folded, origin = "", []
    for place, character in enumerate(text):
        piece = fold(character)
        folded += piece
        origin += [place] * len(piece)
    marked: set[int] = set()
    for term in terms:
        start = folded.find(term) if term else -1
        while start >= 0:
            marked.update(origin[start : start + len(term)])
            start = folded.find(term, start + len(term))
    found: list[tuple[int, int]] = []
    for place in sorted(marked):
        if found and sum(found[-1]) == place:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((place, 1))
    return found
