"""JSON texts one value after the other: an array of thousands of chats is never in memory as a whole, and
Python's lock is given back between the chats."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any

from app.i18n import tr
from app.importing.errors import UnreadableError

_SPACE = re.compile(r"[ \t\r\n]*")


def values_in(text: str) -> Iterator[Any]:
    """The elements of `text` if it is an array, else its one value. Raises `UnreadableError` where it ends
    or is damaged: at its place, after the values before it."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    place = _after_space(text, 0)
    try:
        if text[place : place + 1] == "[":
            place = yield from _elements(decoder, text, place + 1)
        else:
            value, place = decoder.raw_decode(text, place)
            yield value
    except RecursionError as error:
        raise UnreadableError(tr("it is nested too deeply")) from error
    except json.JSONDecodeError as error:
        raise UnreadableError(
            tr("it is damaged in line {line}, column {column}", line=error.lineno, column=error.colno)
        ) from error
    except ValueError as error:  # a number of thousands of digits, or Infinity
        raise UnreadableError(tr("it holds a number that cannot be read")) from error
    if _after_space(text, place) != len(text):
        raise UnreadableError(tr("something follows its end"))


def _elements(decoder: json.JSONDecoder, text: str, place: int) -> Generator[Any, None, int]:
    place = _after_space(text, place)
    if text[place : place + 1] == "]":
        return place + 1
    while True:
        value, place = decoder.raw_decode(text, _after_space(text, place))
        yield value
        place = _after_space(text, place)
        mark = text[place : place + 1]
        if mark == "]":
            return place + 1
        if mark != ",":
            raise json.JSONDecodeError("expected a comma", text, place)
        place += 1


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None  # it matches nothing, too
    return found.end()


def _refuse(name: str) -> Any:
    raise ValueError(name)
