"""From a file's bytes to text, or the reason why it is none. Pure."""

from __future__ import annotations

import codecs
import re

from engine.text import clean_text

_MARKS = (  # UTF-32's begins like UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Tabs, ends of lines and pages, and the escape of coloured logs are all that texts have of these.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_ENDS = re.compile(r"\r\n?")
_SIGNS = frozenset("‘’‚“”„«»‹›–—…•·°§€£¢¥©®™±×÷²³¼½¾¿¡ªº\xa0\xad´¨¸¶")
_MOST_HIGH = 0.3  # of the characters; more are a script that Latin-1 does not have
_LEAST_KNOWN = 0.95  # of those, as letters or the signs above


class NotTextError(ValueError):
    """These bytes are no text that can be read with certainty."""


def decode(data: bytes) -> str:
    """The text, with `\\n` at the ends of lines and none at its own end. Raises `NotTextError`.

    UTF-8, or what a byte order mark says; otherwise Windows' Latin-1, if the result looks like a European
    text: any bytes could be read in it.
    """
    text = _decoded(data)
    if _CONTROL.search(text):
        raise NotTextError
    return normalised(text)


def normalised(text: str) -> str:
    """`text` with `\\n` at the ends of lines and none at its own end."""
    return _ENDS.sub("\n", clean_text(text)).rstrip("\n")


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding)
            except UnicodeDecodeError as error:
                raise NotTextError from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError as error:
        raise NotTextError from error
    if not _plausible(text):
        raise NotTextError
    return text


def _plausible(text: str) -> bool:
    """Whether a text in Latin-1 is one: few letters beyond ASCII, and hardly any odd signs."""
    high = [character for character in text if character > "\x7f"]
    known = sum(character.isalpha() or character in _SIGNS for character in high)
    return len(high) <= _MOST_HIGH * len(text) and known >= _LEAST_KNOWN * len(high)
