"""Formulas drawn from TeX, each once for its size and colour, between the window's other work.

The library that draws them takes about 0.2 s to load, and a formula 2 to 25 ms: all that happens on a thread
beside the window, and nothing of it before the first formula.
"""

from __future__ import annotations

import re
import threading
import unicodedata
import zlib
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app.chat.aside import run_aside
from app.widgets.errand import Errand

GATHER_MS = 20  # what is drawn meanwhile is told of together: documents are laid out anew each time
PIXMAPS = 200  # that are kept, more than a screen shows
MARGIN = 0.5  # pixels around a formula: smooth edges reach beyond it
LONGEST = 2000  # characters: longer sources are shown as they are
_COMMAND_LEFT = re.compile(r">\s*\\[A-Za-z]*")  # a command that the library did not know, in its output
_MATRIX = re.compile(r"(\\begin\{[pbvBV]matrix\*?\})|(\\end\{[pbvBV]matrix\*?\})")
_one_at_a_time = threading.Lock()  # exports draw, too, in a thread of theirs
_NO_GLYPHS = ("CJK", "HANGUL", "HIRAGANA", "KATAKANA", "ARABIC", "HEBREW", "THAI", "DEVANAGARI", "EMOJI")


class FormulaKey(NamedTuple):
    """What makes a picture of a formula the same."""

    tex: str
    display: bool  # on lines of its own: sums and fractions take more room
    size: int  # pixels of the font
    color: str  # "#rrggbb"


@dataclass(frozen=True)
class Formula:
    """A drawn formula; sizes in pixels, ascent and descent from the line that text stands on."""

    width: float
    ascent: float
    descent: float
    picture: bytes  # SVG, compressed: about 2 KB

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.ascent + self.descent

    @property
    def svg(self) -> str:
        """The drawing itself."""
        return zlib.decompress(self.picture).decode()

    def draw(self, painter: QPainter, place: QRectF) -> None:
        """Draw the formula into `place`, sharp on every screen."""
        ratio = painter.device().devicePixelRatioF()
        width, height = round(place.width() * ratio), round(place.height() * ratio)
        pixmap = _pixmap(self.picture, max(1, width), max(1, height))
        painter.drawPixmap(place, pixmap, QRectF(pixmap.rect()))


@lru_cache(PIXMAPS)
def _pixmap(picture: bytes, width: int, height: int) -> QPixmap:
    pixmap = QPixmap(QSize(width, height))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(zlib.decompress(picture))).render(painter)
    painter.end()
    return pixmap


class FormulaError(Exception):
    """A source that cannot be drawn; it is shown as it is."""


class Formulas(QObject):
    """The formulas of the program; get them from `formulas()`."""

    drawn = Signal()  # some that were asked for are there now, or turned out to be none

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[FormulaKey, Formula | None] = {}  # None: it cannot be drawn
        self._wanted: set[FormulaKey] = set()
        self._tell = QTimer(self, interval=GATHER_MS, singleShot=True)
        self._tell.timeout.connect(self.drawn)

    def get(self, key: FormulaKey) -> Formula | None:
        """The formula if it is drawn; otherwise it is drawn soon and `drawn` tells."""
        if key in self._known:
            return self._known[key]
        if key not in self._wanted:
            self._wanted.add(key)
            run_aside(partial(_drawn, key), self._on_drawn)
        return None

    def is_wrong(self, key: FormulaKey) -> bool:
        """Whether the source is known to be none that can be drawn."""
        return key in self._known and self._known[key] is None

    @property
    def busy(self) -> bool:
        """Whether formulas are still to be drawn, or to be told of."""
        return bool(self._wanted) or self._tell.isActive()

    def _on_drawn(self, errand: Errand[tuple[FormulaKey, Formula | None]]) -> None:
        assert errand.result is not None  # any failure to draw is an outcome
        key, formula = errand.result
        self._known[key] = formula
        self._wanted.discard(key)
        if not self._tell.isActive():
            self._tell.start()


@cache
def formulas() -> Formulas:
    """The program's formulas."""
    return Formulas()


def _drawn(key: FormulaKey) -> tuple[FormulaKey, Formula | None]:
    try:
        return key, draw(key)
    except FormulaError:
        return key, None


def draw(key: FormulaKey) -> Formula:
    """Draw a formula now, in any thread. `FormulaError` if it cannot be."""
    if len(key.tex) > LONGEST or not _has_glyphs(key.tex):
        raise FormulaError
    try:
        with _one_at_a_time:
            library = _library()
            mathml = library.tex.tex2mml(_as_one(key.tex), inline=not key.display)
            if _COMMAND_LEFT.search(mathml):
                raise FormulaError
            colored = mathml.replace("<math", f'<math mathcolor="{key.color}"', 1)
            made = library.Math(colored, size=key.size, margin=MARGIN)
            source = made.svg()
            width, height = made.getsize()
            below = -made.getyofst()
    except FormulaError:
        raise
    except Exception as error:  # the library has no error of its own: any source may end in any of Python's
        raise FormulaError from error
    if not 0 < width < 20_000 or not 0 < height < 20_000:
        raise FormulaError
    descent = min(max(below + MARGIN, 0.0), height)
    return Formula(width, height - descent, descent, zlib.compress(source.encode(), 1))


@cache
def _library() -> Any:
    ziafont, ziamath = import_module("ziafont"), import_module("ziamath")

    # Qt's SVG knows no symbols; each glyph is a path of its own.
    ziamath.config.svg2 = False
    ziafont.config.svg2 = False
    # Sums and the like have two sizes, as in TeX. Stretched to their line, those with nothing but a subscript
    # would make the brackets around them as high as the window.
    for form in ziamath.operators.operators.values():
        if form.get("largeop") == "true":
            form.pop("stretchy", None)
    return ziamath


def _as_one(tex: str) -> str:
    """Matrices in braces: else the library takes a power of one for that of its last bracket, and fails."""
    return _MATRIX.sub(lambda found: "{" + found[1] if found[1] else found[2] + "}", tex)


def _has_glyphs(tex: str) -> bool:
    """Whether the font for formulas has what is written: Latin, Greek and the signs of mathematics."""
    return tex.isascii() or not any(
        (ord(character) > 0xFFFF and not 0x1D400 <= ord(character) <= 0x1D7FF)
        or unicodedata.name(character, "").startswith(_NO_GLYPHS)
        for character in tex
    )
