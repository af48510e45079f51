"""A formula as one character of a text document: measured, drawn, and named by its source when copied."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QFontInfo,
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)

from app.chat.formulas import Formula, FormulaKey, formulas
from app.chat.markdown import ENDS
from app.chat.selections import from_units, units

CHARACTER = "\ufffc"  # what Unicode has for an object in a text
OBJECT_TYPE = QTextFormat.ObjectTypes.UserObject.value + 1
_KEY = QTextFormat.Property.UserProperty.value + 1
_MARK = _KEY + 1
_keys: list[FormulaKey] = []
_numbers: dict[FormulaKey, int] = {}


def formula_format(characters: QTextCharFormat, tex: str, mark: str) -> QTextCharFormat:
    """The format of the character that stands for a formula, in a text that looks like `characters`."""
    made = QTextCharFormat(characters)
    made.setObjectType(OBJECT_TYPE)
    made.setProperty(_MARK, mark)
    # The fonts of formulas look smaller than those of text.
    size = round(QFontInfo(characters.font()).pixelSize() * 1.08)
    color = characters.foreground().color().name()
    made.setProperty(_KEY, _number_of(FormulaKey(tex, mark in ("$$", "\\["), size, color)))
    formula = formulas().get(key_of(made))
    made.setVerticalAlignment(_alignment(formula, made))
    return made


def with_source(characters: QTextCharFormat) -> str:
    """The formula as it was written, with its marks."""
    mark = str(characters.property(_MARK))
    return f"{mark}{key_of(characters).tex}{ENDS[mark]}"


def source_of_selection(cursor: QTextCursor) -> str:
    """The selected text, with formulas as they were written."""
    pieces: list[str] = []
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    block = cursor.document().findBlock(start)
    while block.isValid() and block.position() < end:
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            place = fragment.position()
            text = from_units(units(fragment.text())[max(0, start - place) : max(0, end - place)])
            characters = fragment.charFormat()
            pieces.append(
                text.replace(CHARACTER, with_source(characters)) if is_formula(characters) else text
            )
            iterator += 1
        block = block.next()
        if block.isValid() and block.position() <= end:
            pieces.append("\n")
    return "".join(pieces).replace("\u2028", "\n")


def key_of(characters: QTextFormat) -> FormulaKey:
    """What the formula with this format is drawn by."""
    return _keys[characters.intProperty(_KEY)]


def _number_of(key: FormulaKey) -> int:
    """A number for the key: formats hold numbers, and Qt asks for sizes again and again."""
    if key not in _numbers:
        _numbers[key] = len(_keys)
        _keys.append(key)
    return _numbers[key]


def is_formula(characters: QTextCharFormat) -> bool:
    """Whether a character with this format stands for a formula."""
    return characters.objectType() == OBJECT_TYPE


def realign(characters: QTextCharFormat) -> QTextCharFormat:
    """The format that a formula gets once it is drawn."""
    made = QTextCharFormat(characters)
    made.setVerticalAlignment(_alignment(formulas().get(key_of(made)), made))
    return made


def _alignment(formula: Formula | None, characters: QTextCharFormat) -> QTextCharFormat.VerticalAlignment:
    # Qt puts an object on the line, or its middle on the middle of small letters; there is nothing between.
    # What hangs below the line no further than letters do can stand on the line and be drawn below it.
    hangs = QFontMetricsF(characters.font()).descent() + 1
    if formula is None or formula.descent <= hangs:
        return QTextCharFormat.VerticalAlignment.AlignNormal
    return QTextCharFormat.VerticalAlignment.AlignMiddle


class FormulaObject(QPyTextObject):
    """Measures and draws the formulas of a document for Qt."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        document.documentLayout().registerHandler(OBJECT_TYPE, self)

    def intrinsicSize(self, document: QTextDocument, position: int, format: QTextFormat) -> QSizeF:
        """The room that the formula takes in the line; its source's while it is not drawn."""
        characters = format.toCharFormat()
        metrics = QFontMetricsF(characters.font())
        formula = formulas().get(key_of(characters))
        if formula is None:
            return QSizeF(min(metrics.horizontalAdvance(with_source(characters)), 400), metrics.ascent())
        scale = self._scale(document, formula)
        if characters.verticalAlignment() is QTextCharFormat.VerticalAlignment.AlignMiddle:
            # Qt: ascent = (height + half an x) / 2, descent = (height - half an x) / 2.
            half = metrics.xHeight() / 2
            height = max(2 * formula.ascent * scale - half, 2 * formula.descent * scale + half)
            return QSizeF(formula.width * scale, height)
        return QSizeF(formula.width * scale, formula.ascent * scale)

    def drawObject(
        self,
        painter: QPainter,
        rect: QRectF | QRect,
        document: QTextDocument,
        position: int,
        format: QTextFormat,
    ) -> None:
        """Draw the formula, or its source while it is not drawn."""
        rect = QRectF(rect)
        characters = format.toCharFormat()
        formula = formulas().get(key_of(characters))
        if formula is None:
            painter.setPen(characters.foreground().color())
            painter.setFont(characters.font())
            source = QFontMetricsF(characters.font()).elidedText(
                with_source(characters), Qt.TextElideMode.ElideRight, rect.width()
            )
            painter.drawText(QPointF(rect.left(), rect.bottom()), source)
            return
        scale = self._scale(document, formula)
        line = rect.bottom()
        if characters.verticalAlignment() is QTextCharFormat.VerticalAlignment.AlignMiddle:
            line -= (rect.height() - QFontMetricsF(characters.font()).xHeight() / 2) / 2
        top = line - formula.ascent * scale
        formula.draw(painter, QRectF(rect.left(), top, formula.width * scale, formula.height * scale))

    @staticmethod
    def _scale(document: QTextDocument, formula: Formula) -> float:
        """Smaller than drawn where the text is narrower than the formula."""
        room = document.textWidth()
        return min(1.0, room / formula.width) if room > 0 else 1.0
