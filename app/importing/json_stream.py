"""JSON that comes in blocks of text, one value after the other.

A file with thousands of chats is never in memory as a whole, and Python's lock, which the window needs, is
given back between the chats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from app.i18n import tr
from app.importing.errors import UnreadableError

_SPACE = re.compile(r"[ \t\r\n]*")
_NEAR_END = 16  # characters: an error there may be nothing but the end of what has come so far
_OPEN_STRING = "Unterminated string"
_MOST_CHARACTERS = 2**28  # of one value: many times the longest chat


def values_in(blocks: Iterable[str]) -> Iterator[Any]:
    """The elements if the text is an array, else its one value.

    Raises `UnreadableError` where the text ends or is damaged: there, after the values before it.
    """
    text = _Text(iter(blocks))
    try:
        mark = text.next_mark()
        if not mark:
            raise UnreadableError(tr("it is empty"))
        if mark == "[":
            yield from _elements(text)
        else:
            yield text.value()
        if text.next_mark():
            raise UnreadableError(tr("something follows its end"))
    except RecursionError as error:
        raise UnreadableError(tr("it is nested too deeply")) from error
    except json.JSONDecodeError as error:
        place = text.line_of(error)
        raise UnreadableError(tr("it is damaged in line {line}", line=place)) from error
    except UnreadableError:
        raise
    except ValueError as error:  # a number of thousands of digits, or Infinity
        raise UnreadableError(tr("it holds a number that cannot be read")) from error


def _elements(text: _Text) -> Iterator[Any]:
    text.skip()
    if text.next_mark() == "]":
        text.skip()
        return
    while True:
        yield text.value()
        mark = text.next_mark()
        if mark not in ("]", ","):
            raise text.error("expected a comma")
        text.skip()
        if mark == "]":
            return


class _Text:
    """As much of the text as is needed, and the place in it."""

    def __init__(self, blocks: Iterator[str]) -> None:
        self._blocks = blocks
        self._ended = False
        self._text, self._place = "", 0
        self._lines = 1  # the number of the first line in `_text`
        self._decoder = json.JSONDecoder(parse_constant=_refuse)

    def next_mark(self) -> str:
        """The character after any space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._place)
            assert found is not None  # it matches nothing, too
            self._place = found.end()
            if self._place < len(self._text):
                return self._text[self._place]
            self._forget()  # an archive may hold gigabytes of spaces
            if not self._read(1):
                return ""

    def skip(self) -> None:
        """Go on behind the character that `next_mark` gave."""
        self._place += 1

    def value(self) -> Any:
        """The next value; what came before it is forgotten."""
        self.next_mark()
        self._forget()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text)
            except json.JSONDecodeError as error:
                near = error.pos >= len(self._text) - _NEAR_END or error.msg.startswith(_OPEN_STRING)
                # Twice as much each time: what is read again is then no more than what is read.
                if near and self._read(len(self._text)):
                    continue
                raise
            if end == len(self._text) and self._read(1):
                continue  # perhaps a number whose digits go on
            self._place = end
            return value

    def error(self, words: str) -> json.JSONDecodeError:
        """Damage at the present place."""
        return json.JSONDecodeError(words, self._text, self._place)

    def line_of(self, error: json.JSONDecodeError) -> int:
        """The line of the whole text that an error is in."""
        return self._lines + error.lineno - 1

    def _forget(self) -> None:
        self._lines += self._text.count("\n", 0, self._place)
        self._text, self._place = self._text[self._place :], 0

    def _read(self, least: int) -> bool:
        """Take over at least so many characters more, as far as there are any; False at the end."""
        parts: list[str] = []
        while not self._ended and sum(map(len, parts)) < max(1, least):
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
            else:
                parts.append(block)
        self._text += "".join(parts)
        if len(self._text) > _MOST_CHARACTERS:
            raise UnreadableError(tr("a part of it is too long to be read"))
        return bool(parts)


def _refuse(name: str) -> Any:
    raise ValueError(name)
