"""Labels with one purpose each: a page's title, running text, a quiet hint. Colours come from the palette."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from app.theme import mark, theme

_SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse


class TextLabel(QLabel):
    """Plain text that wraps and can be selected with the mouse. Never interprets markup.

    `scale` is relative to the program's font size and follows it when it changes.
    """

    def __init__(
        self, text: str = "", parent: QWidget | None = None, *, scale: float = 1.0, bold: bool = False
    ) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(_SELECTABLE)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        if scale != 1.0 or bold:
            theme().scale_font(self, scale, bold=bold)


def title(text: str, parent: QWidget | None = None) -> TextLabel:
    """A page's heading."""
    return TextLabel(text, parent, scale=1.5, bold=True)


def heading(text: str, parent: QWidget | None = None) -> TextLabel:
    """The heading of a part of a page."""
    return TextLabel(text, parent, bold=True)


def hint(text: str = "", parent: QWidget | None = None) -> TextLabel:
    """Quiet text: an explanation beside something more important."""
    label = TextLabel(text, parent)
    mark(label, muted=True)
    return label
