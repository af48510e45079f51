"""Markdown as tokens: CommonMark with tables, struck-out text and formulas; raw HTML stays text. No Qt.

Formulas are written as `$…$` or `\\(…\\)` in a line, as `$$…$$` or `\\[…\\]` on lines of their own. Their
tokens are "math_inline" and "math_block"; `content` is the TeX source, `markup` the opening mark. A formula
on its own lines whose end has not come yet is a "math_open".
"""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

ENDS = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]"}  # of a formula, by its opening mark
_BLOCK_MARKS = ("$$", "\\[")
_TEX_SIGNS = frozenset("\\^_=+-*/<>{}")


def parse(source: str) -> list[Token]:
    """The tokens of a piece of Markdown."""
    return _parser().parse(source)


@cache
def _parser() -> MarkdownIt:
    return new_parser()


def new_parser() -> MarkdownIt:
    """A parser of one's own, to give it other rules."""
    # A line ends where the model ended it, as in poems and addresses; Markdown alone would join the lines.
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "math_inline", _inline_formula)
    before = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "math_block", _block_formula, {"alt": before})
    return parser


def _inline_formula(state: StateInline, silent: bool) -> bool:
    start = state.pos
    mark = next((mark for mark in ("$$", "\\[", "\\(", "$") if state.src.startswith(mark, start)), "")
    if not mark:
        return False
    end = _end_of_formula(state.src, start + len(mark), state.posMax, mark)
    if end < 0:
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.markup, token.content = mark, state.src[start + len(mark) : end].strip()
    state.pos = end + len(ENDS[mark])
    return True


def _end_of_formula(source: str, start: int, limit: int, mark: str) -> int:
    """Where the closing mark stands; -1 if there is none, or if these are dollars of money."""
    if mark == "$" and (start >= limit or source[start].isspace()):
        return -1
    place = start
    while True:
        place = source.find(ENDS[mark], place, limit)
        if place < 0:
            return -1
        after = source[place + 1 : place + 2]
        escaped = mark[0] == "$" and source[place - 1] == "\\"
        money = mark == "$" and (source[place - 1].isspace() or after.isdigit() or after == "$")
        if not escaped and not money:
            return place if _may_be_formula(source[start:place], mark) else -1
        if mark == "$" and source[place - 1].isspace():
            return -1  # "from $5 to $6": an opening mark where the end should be
        place += 1


def _may_be_formula(tex: str, mark: str) -> bool:
    """Whether what stands between two marks can be meant as a formula; single dollars are also money."""
    if mark != "$":
        return bool(tex.strip())
    price = tex[0].isdigit() and " " in tex and not _TEX_SIGNS.intersection(tex)
    return not price and "`" not in tex


def _block_formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    mark = first[:2]
    if mark not in _BLOCK_MARKS or state.is_code_block(start):
        return False
    lines: list[str] = []
    rest, line, closed = first[2:], start, False
    while True:
        before, closing, after = rest.partition(ENDS[mark])
        lines.append(before)
        if closing:
            if after.strip():
                return False  # the text goes on behind it: it is part of a paragraph
            closed = True
            break
        if line + 1 >= end or state.sCount[line + 1] < state.blkIndent:
            break
        line += 1
        rest = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    if silent:
        return True
    token = state.push("math_block" if closed else "math_open", "math", 0)
    token.markup, token.content = mark, "\n".join(lines).strip()
    token.map = [start, line + 1]
    state.line = line + 1
    return True
