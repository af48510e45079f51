"""Pieces of rich text, one below the other on the pages of a PDF, cut between lines where a page ends.

Each piece is a small document of its own: laying out a whole chat at once would hold Python's lock, and with
it the window, for seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QBuffer, QIODevice, QLocale, QMarginsF, QRectF, Qt, QUrl
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QImage,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QTextDocument,
    QTextOption,
)

from app.export.formulas import PrintedFormulas
from app.theme_colors import Colors

_DPI = 1200  # fine enough that glyphs stand where the font wants them
_MARGIN = 18.0  # millimetres
_POINTS = 10.0
_LIST_INDENT = 22.0  # pixels of a screen, which Qt scales


@dataclass(frozen=True)
class Piece:
    """Some HTML. Lengths are in points; `inset` is between the ground's edge and the text.

    `joined`: the ground goes on above, below. `keep`: not alone at the end of a page.
    """

    html: str
    indent: float = 0.0
    above: float = 0.0
    ground: QColor | None = None
    inset: float = 0.0
    joined: tuple[bool, bool] = (False, False)
    keep: bool = False


class _Document(QTextDocument):
    """Text that shows the given pictures and never loads anything."""

    def __init__(self, images: Mapping[str, QImage]) -> None:
        super().__init__()
        self._images = images

    def loadResource(self, _type: int, name: QUrl | str) -> Any:
        """Only what is there: printing a chat must not fetch what its messages name."""
        return self._images.get(name if isinstance(name, str) else name.toString())


class PageWriter:
    """Writes pieces to a PDF; `finish` gives its bytes."""

    def __init__(self, title: str, style: str, colors: Colors) -> None:
        self._style, self._foot_color = style, colors.muted
        self._buffer = QBuffer()
        self._buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        self._writer = QPdfWriter(self._buffer)
        self._writer.setResolution(_DPI)
        self._writer.setTitle(title)
        self._writer.setCreator("Fiddler Chat")
        self._writer.setPageLayout(_layout())
        self._font = QFont(QGuiApplication.font())
        self._font.setPointSizeF(_POINTS)
        # Qt takes the sizes of pictures as pixels of the screen.
        screen = QGuiApplication.primaryScreen().logicalDotsPerInchX()
        # It places them by the height of a small letter in pixels of the screen, also on finer paper.
        x_height = QFontMetricsF(self._font).xHeight() * screen / _DPI
        self.formulas = PrintedFormulas(colors.text.name(), _POINTS * screen / 72, x_height)
        self._painter = QPainter(self._writer)
        area = self._writer.pageLayout().paintRectPixels(_DPI)
        self._width, self._height = float(area.width()), float(area.height()) - self._length(24)
        self._y = 0.0
        self._number = 1
        self._draw_foot()

    def add(self, piece: Piece) -> None:
        """Put a piece below the one before, on as many pages as it needs."""
        document, lines = self._laid_out(piece)
        above = self._length(piece.above) if self._y else 0.0
        need = document.size().height() + self._length(30) if piece.keep else 0.0
        if self._y and self._y + above + need > self._height:
            self._new_page()
            above = 0.0
        self._y += above
        self._draw(piece, document, lines)

    def finish(self) -> bytes:
        """The whole file."""
        self._painter.end()
        self._buffer.close()
        return bytes(self._buffer.data().data())

    def abandon(self) -> None:
        """Stop in the middle; Qt wants its painter ended."""
        self._painter.end()

    def _length(self, points: float) -> float:
        return points * _DPI / 72

    def _laid_out(self, piece: Piece) -> tuple[QTextDocument, list[tuple[float, float]]]:
        document = _Document(self.formulas.images)
        document.setUndoRedoEnabled(False)
        document.setDocumentMargin(0)
        document.setDefaultFont(self._font)
        document.setIndentWidth(_LIST_INDENT)
        document.setDefaultStyleSheet(self._style)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        document.setDefaultTextOption(option)
        document.documentLayout().setPaintDevice(self._writer)
        document.setHtml(piece.html)
        document.setTextWidth(self._width - self._length(piece.indent + 2 * piece.inset))
        return document, _lines(document)

    def _draw(self, piece: Piece, document: QTextDocument, lines: Sequence[tuple[float, float]]) -> None:
        inset = self._length(piece.inset)
        above, below = (0.0 if joined else inset for joined in piece.joined)
        whole = document.size().height()
        begin = 0.0
        while begin < whole:
            top = above if begin == 0 else 0.0
            room = self._height - self._y - top
            end = _cut(lines, begin, begin + room, whole)
            if end <= begin:  # not even a line: on a fresh page whatever fits, or the line is cut
                if self._y:
                    self._new_page()
                    continue
                end = min(begin + room, whole)
            bottom = below if end >= whole else 0.0
            self._draw_slice(piece, document, begin, end, top, bottom)
            self._y += top + (end - begin) + bottom
            begin = end
            if begin < whole:
                self._new_page()

    def _draw_slice(
        self, piece: Piece, document: QTextDocument, begin: float, end: float, top: float, bottom: float
    ) -> None:
        left = self._length(piece.indent)
        if piece.ground is not None:
            ground = QRectF(left, self._y, self._width - left, top + end - begin + bottom)
            self._painter.fillRect(ground, piece.ground)
        self._painter.save()
        self._painter.translate(left + self._length(piece.inset), self._y + top - begin)
        clip = QRectF(0, begin, document.size().width(), end - begin)
        self._painter.setClipRect(clip)
        context = QAbstractTextDocumentLayout.PaintContext()
        context.clip = clip
        document.documentLayout().draw(self._painter, context)
        self._painter.restore()

    def _new_page(self) -> None:
        self._writer.newPage()
        self._y = 0.0
        self._number += 1
        self._draw_foot()

    def _draw_foot(self) -> None:
        self._painter.setFont(self._font)
        self._painter.setPen(self._foot_color)
        foot = QRectF(0, self._height, self._width, self._length(24))
        place = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom
        self._painter.drawText(foot, int(place), str(self._number))


def _layout() -> QPageLayout:
    american = QLocale().measurementSystem() is QLocale.MeasurementSystem.ImperialUSSystem
    size = QPageSize(QPageSize.PageSizeId.Letter if american else QPageSize.PageSizeId.A4)
    margins = QMarginsF(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
    return QPageLayout(size, QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter)


def _lines(document: QTextDocument) -> list[tuple[float, float]]:
    """Top and bottom of every line, sorted; cells of a table have theirs side by side."""
    found = []
    block = document.begin()
    layout = document.documentLayout()
    while block.isValid():
        top = layout.blockBoundingRect(block).top()
        text = block.layout()
        for number in range(text.lineCount()):
            line = text.lineAt(number)
            found.append((top + line.y(), top + line.y() + line.height()))
        block = block.next()
    return sorted(found)


def _cut(lines: Sequence[tuple[float, float]], begin: float, limit: float, whole: float) -> float:
    """The lowest place from `begin` to `limit` that no line crosses; `whole` if all of it fits."""
    if whole <= limit:
        return whole
    best = reach = begin
    for top, bottom in lines:
        if top >= reach > begin and reach <= limit:
            best = reach
        reach = max(reach, bottom)
        if top > limit:
            break
    return best
