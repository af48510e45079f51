"""Texts of people and models where Qt would find signs of its own in them."""

from __future__ import annotations

from PySide6.QtGui import Qt


def as_tip(text: str) -> str:
    """What shows `text` as a tool tip: Qt takes one with a "<b>" in it for markup, and hides that."""
    return Qt.convertFromPlainText(text) if Qt.mightBeRichText(text) else text


def as_label(text: str) -> str:
    """What shows `text` on a button or in a menu, where "&" marks the letter that chooses it."""
    return text.replace("&", "&&")
