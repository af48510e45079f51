"""Markdown as it reads without its marks: for pasting where they would only be noise. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it.token import Token

from app.chat.markdown import ENDS, parse

_STEP = "  "
_LEAVES = {"inline", "fence", "code_block", "hr", "math_block", "math_open"}


def plain_text(source: str) -> str:
    """Paragraphs, lists, tables as lines; code and formulas as they are; of links and pictures the words."""
    writer = _Writer()
    for token in parse(source):
        writer.take(token)
    return "\n\n".join(writer.parts)


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []  # of the top level, with an empty line between them
        self._lines: list[str] = []
        self._cells: list[str] | None = None  # of the table's row
        self._numbers: list[int | None] = []  # of the lists around: the next number, None for dots
        self._mark = ""  # of the item whose first line comes next
        self._depth = 0

    def take(self, token: Token) -> None:
        kind = token.type
        if kind == "bullet_list_open":
            self._numbers.append(None)
        elif kind == "ordered_list_open":
            self._numbers.append(int(token.attrGet("start") or 1))
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._numbers.pop()
        elif kind == "list_item_open":
            self._begin_item()
        elif kind == "tr_open":
            self._cells = []
        elif kind == "tr_close":
            self._lines.append("\t".join(self._cells or []))
            self._cells = None
        elif kind in _LEAVES and self._cells is not None:
            self._cells.append(_text_of(token))
        elif kind in _LEAVES:
            self._write(_text_of(token))
        self._depth += token.nesting
        if self._depth == 0 and self._lines:
            self.parts.append("\n".join(self._lines))
            self._lines = []

    def _begin_item(self) -> None:
        number = self._numbers[-1]
        self._mark = "• " if number is None else f"{number}. "
        self._numbers[-1] = None if number is None else number + 1

    def _write(self, text: str) -> None:
        indent = _STEP * len(self._numbers)
        if self._mark:
            indent = indent[len(_STEP) :] + " " * len(self._mark)
        lines = [f"{indent}{line}".rstrip() for line in text.split("\n")]
        if self._mark:
            lines[0] = lines[0][: len(indent) - len(self._mark)] + self._mark + lines[0][len(indent) :]
            self._mark = ""
        self._lines += lines


def _text_of(token: Token) -> str:
    if token.type == "inline":
        return _words(token.children or [])
    if token.type.startswith("math"):
        return _formula(token)
    return "—" if token.type == "hr" else token.content.rstrip("\n")


def _words(tokens: Sequence[Token]) -> str:
    pieces = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            pieces.append("\n")  # a line ends where the model ended it, as in poems
        elif token.type == "image":
            pieces.append(_words(token.children or []))
        elif token.type == "math_inline":
            pieces.append(_formula(token))
        else:
            pieces.append(token.content)
    return "".join(pieces)


def _formula(token: Token) -> str:
    """Its source with its marks: without them nobody could tell where it begins and ends."""
    end = "" if token.type == "math_open" else ENDS[token.markup]
    return f"{token.markup}{token.content}{end}"
