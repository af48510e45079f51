"""Spin boxes whose number stands as far from the frame as the words of a combo box: a style sheet cannot."""

from __future__ import annotations

from PySide6.QtWidgets import QAbstractSpinBox

from app.theme import theme

_INSET = 7  # pixels at a zoom of 100 %


def inset(box: QAbstractSpinBox) -> None:
    """Move the text of a spin box away from its frame."""
    box.lineEdit().setTextMargins(round(_INSET * theme().scale), 0, 0, 0)
