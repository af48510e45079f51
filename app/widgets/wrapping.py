"""Where the lines of a text that somebody else wrote may be broken."""

from __future__ import annotations

import re

from PySide6.QtGui import QTextOption

_LONG_WORD = re.compile(r"\S{20000}")


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Between words, and inside those that are longer than a line; anywhere if one is longer than many pages.

    For each line of a word Qt looks for the word's end: 500,000 letters without a space, as in encoded data,
    took it 45 s, broken anywhere 0.7 s.
    """
    modes = QTextOption.WrapMode
    return modes.WrapAnywhere if _LONG_WORD.search(text) else modes.WrapAtWordBoundaryOrAnywhere
