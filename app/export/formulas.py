"""Formulas in exported documents: drawn, or shown as their source where they cannot be."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from app.chat.formulas import Formula, FormulaError, FormulaKey, draw
from app.chat.markdown import ENDS

_SIZE = 16  # of the font that a formula is drawn for; documents scale it
_DISPLAY_MARKS = ("$$", "\\[")
_HEAD = re.compile(r"<svg[^>]*?(viewBox=\"[^\"]*\")[^>]*>")
_KEPT = 500  # formulas: an answer often comes back to the same ones
_DOTS = 4  # of a printed picture for each pixel of the layout: 384 an inch


@lru_cache(_KEPT)
def svg_formula(tex: str, mark: str) -> str:
    """A formula as a part of an HTML text, in the colour and the size of the words around it."""
    try:
        drawn = draw(FormulaKey(tex, mark in _DISPLAY_MARKS, _SIZE, "currentColor"))
    except FormulaError:
        return _source(tex, mark)
    size = (drawn.width, drawn.ascent + drawn.descent, -drawn.descent)
    width, height, below = (f"{pixels / _SIZE:.3f}em" for pixels in size)
    style = f"width: {width}; height: {height}; vertical-align: {below}"
    attributes = f'class="math" role="img" aria-label="{escape(tex)}" style="{style}"'
    return _HEAD.sub(lambda head: f"<svg {attributes} {head[1]}>", drawn.svg, count=1)


class PrintedFormulas:
    """Formulas as pictures of a printed document; `images` has them by the names in the HTML."""

    def __init__(self, color: str, font_pixels: float, x_height: float) -> None:
        """For text of this size; `x_height` is that of a small letter, as Qt takes it."""
        self._color, self._scale, self._x_height = color, font_pixels / _SIZE, x_height
        self.images: dict[str, QImage] = {}
        self._made: dict[tuple[str, str], str] = {}

    def html(self, tex: str, mark: str) -> str:
        """What stands in the text; the picture is in `images` then."""
        if (tex, mark) not in self._made:
            self._made[tex, mark] = self._make(tex, mark)
        return self._made[tex, mark]

    def _make(self, tex: str, mark: str) -> str:
        try:
            drawn = draw(FormulaKey(tex, mark in _DISPLAY_MARKS, _SIZE, self._color))
        except FormulaError:
            return _source(tex, mark)
        ascent, descent = drawn.ascent * self._scale, drawn.descent * self._scale
        # Qt puts the middle of a picture a quarter of `x_height` above the line that text stands on.
        lack = ascent - descent - self._x_height / 2
        above, below = max(0.0, -lack), max(0.0, lack)
        width, height = drawn.width * self._scale, above + ascent + descent + below
        name = f"formula:{len(self.images)}"
        self.images[name] = _picture(drawn, width, height, above, ascent + descent)
        return f'<img src="{name}" width="{width:.2f}" height="{height:.2f}" style="vertical-align: middle">'


def _picture(drawn: Formula, width: float, height: float, top: float, inner: float) -> QImage:
    picture = QImage(
        QSize(max(1, round(width * _DOTS)), max(1, round(height * _DOTS))), QImage.Format.Format_ARGB32
    )
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(picture.width() / width, picture.height() / height)
    QSvgRenderer(QByteArray(drawn.svg.encode())).render(painter, QRectF(0, top, width, inner))
    painter.end()
    return picture


def _source(tex: str, mark: str) -> str:
    return f"<code>{escape(mark + tex + ENDS[mark])}</code>"
