"""Writes the text of a paragraph: bold and slanted, code, harmless links, formulas, images as links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markdown_it.token import Token
from PySide6.QtCore import QUrl
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor

from app.chat.formula_object import CHARACTER, formula_format, key_of, with_source
from app.chat.formulas import formulas
from app.i18n import tr
from app.theme import monospace
from app.theme_colors import Colors

SAFE_SCHEMES = ("http", "https", "mailto")
LINE_BREAK = "\u2028"  # a new line of the same paragraph
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}*_、。，）」]")


def is_safe(address: str) -> bool:
    """Whether a link may be opened: web pages and mail, no files, no scripts."""
    return QUrl(address).scheme().lower() in SAFE_SCHEMES


@dataclass
class Look:
    """How the next characters look."""

    bold: bool = False
    slanted: bool = False
    struck: bool = False
    muted: bool = False
    link: str = ""
    scale: float = 1.0  # of the font's size


class InlineWriter:
    """Inserts inline tokens at a cursor."""

    def __init__(self, cursor: QTextCursor, font: QFont, colors: Colors) -> None:
        self.cursor, self._font, self._colors = cursor, font, colors
        self._fixed = monospace()
        self.undrawn: list[QTextCursor] = []  # the formulas that are not drawn yet

    def write(self, tokens: Sequence[Token], look: Look, skip: int = 0) -> None:
        """Insert the tokens, leaving out the first `skip` characters (the box of a task)."""
        look = replace(look)
        links: list[str] = []
        for token in tokens:
            match token.type:
                case "text":
                    self._write_text(token.content[skip:], look)
                    skip = 0
                case "strong_open" | "strong_close":
                    look.bold = token.nesting > 0
                case "em_open" | "em_close":
                    look.slanted = token.nesting > 0
                case "s_open" | "s_close":
                    look.struck = token.nesting > 0
                case "link_open":
                    links.append(look.link)
                    address = str(token.attrs.get("href", ""))
                    look.link = address if is_safe(address) else ""
                case "link_close":
                    look.link = links.pop()
                case "softbreak" | "hardbreak":
                    self._insert(LINE_BREAK, look)
                case "code_inline":
                    self.write_code(token.content, look)
                case "math_inline":
                    self.write_formula(formula_format(self._format(look), token.content, token.markup))
                case "image":
                    self._write_image(token, look)
                case _:
                    self._insert(token.content, look)

    def write_code(self, code: str, look: Look | None = None) -> None:
        """Insert code."""
        characters = self._format(look or Look())
        characters.setFontFamilies(self._fixed.families())
        characters.setFontPointSize(self._fixed.pointSizeF() * (look.scale if look else 1.0))
        characters.setFontFixedPitch(True)
        characters.setBackground(self._colors.code)
        self.cursor.insertText(code, characters)

    def write_formula(self, characters: QTextCharFormat) -> None:
        """Insert a formula by its format; one that cannot be drawn as its source."""
        key = key_of(characters)
        if formulas().is_wrong(key):
            self.write_code(with_source(characters))
            return
        place = self.cursor.position()
        self.cursor.insertText(CHARACTER, characters)
        if formulas().get(key) is None:
            waiting = QTextCursor(self.cursor)
            waiting.setPosition(place)
            waiting.setKeepPositionOnInsert(True)
            self.undrawn.append(waiting)

    def _write_text(self, text: str, look: Look) -> None:
        """Insert text; addresses of web pages in it become links."""
        place = 0
        if not look.link and "://" in text:
            for match in _ADDRESS.finditer(text):
                self._insert(text[place : match.start()], look)
                self._insert(match.group(), replace(look, link=match.group()))
                place = match.end()
        self._insert(text[place:], look)

    def _write_image(self, token: Token, look: Look) -> None:
        """Show "[image: its description]" as a link: a message never makes the program fetch something."""
        address = str(token.attrs.get("src", ""))
        label = tr("[image: {label}]", label=token.content or address)
        self._insert(label, replace(look, link=address if is_safe(address) else ""))

    def _insert(self, text: str, look: Look) -> None:
        if text:
            self.cursor.insertText(text, self._format(look))

    def _format(self, look: Look) -> QTextCharFormat:
        characters = QTextCharFormat()
        characters.setFont(self._font)
        characters.setForeground(self._colors.muted if look.muted else self._colors.text)
        if look.bold:
            characters.setFontWeight(QFont.Weight.DemiBold if look.scale > 1 else QFont.Weight.Bold)
        if look.slanted:
            characters.setFontItalic(True)
        if look.struck:
            characters.setFontStrikeOut(True)
        if look.scale != 1:
            characters.setFontPointSize(self._font.pointSizeF() * look.scale)
        if look.link:
            characters.setAnchor(True)
            characters.setAnchorHref(look.link)
            characters.setForeground(self._colors.link)
            characters.setFontUnderline(True)
        return characters
