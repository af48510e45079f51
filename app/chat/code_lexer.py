"""Colours for code that is still being written: each line is read once, by its language's rules. No Qt.

    lexer = CodeLexer("python")
    first = lexer.read(code_so_far)     # lines from `first` on have got other colours
    lexer.spans(0)                      # what is what in the first line

Pygments reads a whole file at a time. Its usual lexers are tables of regular expressions and a stack of
states, so we walk their tables ourselves and remember the stack near the end of the text: the next piece is
read from there. What a pattern can only know from the lines after it (the end of a shell's here-document) is
found when the code is read again as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from pygments.lexer import Lexer, RegexLexer
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, _TokenType

LONGEST_LINE = 4000  # characters: code with longer lines is shown plain, some patterns would take seconds
PORTION = 6000  # characters that are read at once: about 7 ms
LONGEST_WHOLE = 30_000  # characters: languages that can only be read from the start are plain beyond
LOOKAHEAD = 2  # lines at the end that are read again: patterns may look past the end of a line


class Role(StrEnum):
    """What a piece of code is; each has a colour of the theme, `code_…`."""

    KEYWORD = "keyword"
    STRING = "string"
    COMMENT = "comment"
    NUMBER = "number"
    NAME = "name"  # of what is defined or called: functions, classes, tags, keys
    TYPE = "type"  # of what the language brings: types, functions, constants
    REMOVED = "removed"  # lines of a diff


class Span(NamedTuple):
    """A piece of one line; `start` and `length` in UTF-16 units, as Qt counts."""

    start: int
    length: int
    role: Role


# The first kind that a token belongs to decides.
_ROLES: tuple[tuple[Any, Role], ...] = (
    (Comment.Preproc, Role.KEYWORD),
    (Comment.PreprocFile, Role.STRING),
    (Comment, Role.COMMENT),
    (String, Role.STRING),
    (Number, Role.NUMBER),
    (Keyword.Type, Role.TYPE),
    (Keyword.Constant, Role.NUMBER),
    (Keyword, Role.KEYWORD),
    (Operator.Word, Role.KEYWORD),
    (Name.Function, Role.NAME),
    (Name.Class, Role.NAME),
    (Name.Tag, Role.NAME),
    (Name.Decorator, Role.NAME),
    (Name.Namespace, Role.NAME),
    (Name.Builtin, Role.TYPE),
    (Name.Exception, Role.TYPE),
    (Name.Attribute, Role.TYPE),
    (Name.Constant, Role.NUMBER),
    (Name.Variable, Role.TYPE),
    (Generic.Inserted, Role.STRING),
    (Generic.Deleted, Role.REMOVED),
    (Generic.Heading, Role.KEYWORD),
    (Generic.Subheading, Role.KEYWORD),
    (Generic.Prompt, Role.COMMENT),
    (Generic.Error, Role.REMOVED),
)

_loaded: set[str] = set()  # languages
_Stack = tuple[str, ...]
_Token = tuple[Any, str]  # what it is, its text


@cache
def _names() -> dict[str, str]:
    """Pygments' name of a language by each of its aliases and file endings; loads no lexer."""
    names: dict[str, str] = {}
    for name, aliases, patterns, _ in get_all_lexers(plugins=False):
        for alias in aliases:
            names.setdefault(alias.lower(), name)
        names.setdefault(name.lower(), name)
        for pattern in patterns:
            names.setdefault(pattern.removeprefix("*.").lower(), name)
    return names


@cache
def _aliases() -> dict[str, str]:
    """An alias that Pygments knows, by its name of a language."""
    return {name: aliases[0] for name, aliases, _, _ in get_all_lexers(plugins=False) if aliases}


def language_name(language: str) -> str:
    """The language's proper name: "py" is "Python"; what nobody knows stays as it is."""
    name = _names().get(language.lower(), language)
    return "Text" if name == "Text only" else name


@cache
def _lexer_for(language: str) -> Lexer | None:
    alias = _aliases().get(_names().get(language.lower(), ""))
    return get_lexer_by_name(alias) if alias else None


@cache
def _role_of(token: Any) -> Role | None:
    if token is None:
        return None
    return next((role for kind, role in _ROLES if token in kind), None)


class CodeLexer:
    """Finds what is what in growing code. A language that is not known has no colours."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._lines: list[list[Span]] = [[]]
        self._done = 0  # characters that have been read, including those that are read again
        self._from = 0  # the place from which the next text is read, and what is known there
        self._stack: _Stack = ("root",)
        self._line, self._column = 0, 0  # of `_from`
        self._plain = False

    def spans(self, line: int) -> list[Span]:
        """The coloured pieces of a line."""
        return self._lines[line] if line < len(self._lines) else []

    @property
    def known(self) -> int:
        """The number of lines that have been read."""
        return len(self._lines) - 1 if self._done else 0

    def is_ready(self) -> bool:
        """Whether the language's rules are loaded."""
        return self.language in _loaded

    def load(self) -> None:
        """Load the language's rules, on any thread; the first `read` does it otherwise, in up to 35 ms."""
        _lexer_for(self.language)
        _loaded.add(self.language)

    def has_read(self, code: str) -> bool:
        """Whether nothing of `code` is left to read."""
        return self._plain or self._done >= len(code)

    def read(self, code: str) -> int | None:
        """Go on reading `code`, which continues what was read before, by one portion at most.

        Returns the first line whose spans are new, None when there was nothing to do.
        """
        lexer = None if self.has_read(code) else _lexer_for(self.language)
        if lexer is None:
            return None
        portion = code[: self._portion_end(code)]
        if any(len(line) > LONGEST_LINE for line in portion[self._from :].split("\n")):
            self._plain = True
            return None
        if _walkable(lexer):
            return self._go_on(lexer, portion)
        return self._read_whole(lexer, code)

    def _portion_end(self, code: str) -> int:
        end = self._done + PORTION
        if end >= len(code):
            return len(code)
        line_end = code.find("\n", end)
        return len(code) if line_end < 0 else line_end + 1

    def _go_on(self, lexer: Lexer, code: str) -> int:
        first = self._line
        del self._lines[self._line + 1 :]
        self._lines[-1] = [span for span in self._lines[-1] if span.start < self._column]
        settled = _line_start(code, LOOKAHEAD)
        line, column = self._line, self._column
        ended = code + "\n"  # many patterns want the end of a line
        for tokens, end, stack in _walk(lexer, ended, self._from, self._stack):
            for kind, text in tokens:
                line, column = self._add(kind, text, line, column)
            if end <= settled:
                self._from, self._stack, self._line, self._column = end, stack, line, column
        self._done = len(code)
        return first

    def _read_whole(self, lexer: Lexer, code: str) -> int | None:
        if len(code) > LONGEST_WHOLE:
            self._plain = True
            return None
        self._lines = [[]]
        line = column = 0
        for _, kind, text in lexer.get_tokens_unprocessed(code + "\n"):
            line, column = self._add(kind, text, line, column)
        self._done = len(code)
        return 0

    def _add(self, kind: Any, text: str, line: int, column: int) -> tuple[int, int]:
        role = _role_of(kind)
        first, *others = text.split("\n")
        for index, piece in enumerate((first, *others)):
            if index:
                line, column = line + 1, 0
                self._lines.append([])
            length = len(piece) if piece.isascii() else len(piece.encode("utf-16-le", "surrogatepass")) // 2
            if role is not None and length:
                self._lines[-1].append(Span(column, length, role))
            column += length
        return line, column


def _walkable(lexer: Lexer) -> bool:
    """Whether the lexer is a table and nothing else: some do more in their own `get_tokens_unprocessed`."""
    return (
        isinstance(lexer, RegexLexer)
        and type(lexer).get_tokens_unprocessed is RegexLexer.get_tokens_unprocessed
    )


def _line_start(code: str, lines: int) -> int:
    """Where the last `lines` lines of the code begin."""
    place = len(code)
    for _ in range(lines):
        place = code.rfind("\n", 0, place)
        if place < 0:
            return 0
    return place + 1


def _walk(lexer: Any, code: str, place: int, stack: _Stack) -> Iterator[tuple[list[_Token], int, _Stack]]:
    """Read `code` from `place` on, where `stack` is known: of each match its tokens, end and new stack."""
    table = lexer._tokens
    while place < len(code):
        for match_at, action, change in table[stack[-1]]:
            match = match_at(code, place)
            if match is None:
                continue
            if action is None or isinstance(action, _TokenType):
                tokens: list[_Token] = [(action, match.group())]
            else:
                tokens = list(_without_gaps(action(lexer, match), match))
            place = match.end()
            stack = _changed(stack, change)
            yield tokens, place, stack
            break
        else:
            # No pattern fits: an error of the code or of the table. A new line starts afresh.
            character = code[place]
            stack = ("root",) if character == "\n" else stack
            place += 1
            yield [(None, character)], place, stack


def _without_gaps(found: Iterable[tuple[int, Any, str]], match: re.Match[str]) -> Iterator[_Token]:
    """What a pattern's groups were found to be, with the text between the groups."""
    place, code = match.start(), match.string
    for start, kind, text in found:
        if start > place:
            yield None, code[place:start]
        yield kind, text
        place = start + len(text)
    if place < match.end():
        yield None, code[place : match.end()]


def _changed(stack: _Stack, change: Any) -> _Stack:
    """The stack after a match, in the three notations of Pygments' tables. It never gets empty."""
    if change is None:
        return stack
    if isinstance(change, int):
        return stack[:change] if abs(change) < len(stack) else stack[:1]
    for state in (change,) if isinstance(change, str) else change:
        if state == "#pop":
            stack = stack[:-1] if len(stack) > 1 else stack
        elif state == "#push":
            stack = (*stack, stack[-1])
        else:
            stack = (*stack, state)
    return stack
