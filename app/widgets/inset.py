"""Room between the frame and the number of a spin box, where the style sheet cannot give it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QAbstractSpinBox

from app.theme import theme

_INSET = 7  # pixels, as the choices beside have


class _Inset(QObject):
    """Qt leaves out a spin box's padding at the left once its buttons are styled."""

    def __init__(self, box: QAbstractSpinBox) -> None:
        super().__init__(box)
        self._box = box
        theme().changed.connect(self._fit)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        self._box.lineEdit().setTextMargins(round(_INSET * theme().scale), 0, 0, 0)


def inset(box: QAbstractSpinBox) -> None:
    """Keep the number away from the frame in every theme, now and when it changes."""
    _Inset(box)
