"""Puts formulas in their place once they are drawn, or their sources if they cannot be."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QTextCharFormat, QTextCursor, QTextDocument

from app.chat.formula_object import FormulaObject, is_formula, key_of, realign, with_source
from app.chat.formulas import formulas
from app.theme import monospace, theme


class FormulaWatch(QObject):
    """Waits for the formulas of one document."""

    def __init__(self, document: QTextDocument, parent: QObject) -> None:
        super().__init__(parent)
        self._handler = FormulaObject(document)
        self._document = document
        self._waiting: list[QTextCursor] = []

    def add(self, undrawn: list[QTextCursor]) -> None:
        """Wait for the formulas behind these places. Places whose text is removed are forgotten."""
        if undrawn and not self._waiting:
            formulas().drawn.connect(self._look)
        self._waiting += undrawn

    def _look(self) -> None:
        together = QTextCursor(self._document)
        together.beginEditBlock()  # else the document is laid out anew for each: a table for minutes
        waiting, self._waiting = self._waiting, []
        for place in waiting:
            formula = QTextCursor(place)
            formula.setKeepPositionOnInsert(False)
            if not formula.movePosition(
                QTextCursor.MoveOperation.NextCharacter, QTextCursor.MoveMode.KeepAnchor
            ):
                continue
            characters = formula.charFormat()
            if not is_formula(characters):
                continue
            key = key_of(characters)
            if formulas().is_wrong(key):
                # First the source, then away with the object: places that are kept behind it stay behind.
                end = formula.position()
                formula.setPosition(end - 1)
                formula.insertText(with_source(characters), _as_code(characters))
                formula.deleteChar()
            elif formulas().get(key) is not None:
                formula.setCharFormat(realign(characters))
            else:
                self._waiting.append(place)
        together.endEditBlock()
        if not self._waiting:
            formulas().drawn.disconnect(self._look)


def _as_code(characters: QTextCharFormat) -> QTextCharFormat:
    fixed = monospace()
    made = QTextCharFormat()
    made.setForeground(characters.foreground())
    made.setFont(characters.font())
    made.setFontFamilies(fixed.families())
    made.setFontPointSize(fixed.pointSizeF())
    made.setFontFixedPitch(True)
    made.setBackground(theme().colors.code)
    return made
