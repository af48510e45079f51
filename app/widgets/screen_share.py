"""How wide a part of the main window must be, on a screen that may have no room for that."""

from __future__ import annotations

from PySide6.QtWidgets import QSplitter, QWidget

_FRAMES = 16  # pixels: those of the window, and what divides the parts


def share_of_screen(part: QWidget, pixels: int, share: float) -> int:
    """`pixels`, or what a large font leaves to a part: the shares of all parts together fit on the screen."""
    return min(pixels, int(_room(part) * share))


def rest_of_screen(part: QWidget, pixels: int, share: float) -> int:
    """The same for the part that may also take what the least widths of the others leave."""
    splitter = part.parentWidget()
    if not isinstance(splitter, QSplitter):
        return share_of_screen(part, pixels, share)
    parts = (splitter.widget(place) for place in range(splitter.count()))
    taken = sum(other.minimumSizeHint().width() for other in parts if other is not None and other is not part)
    return min(pixels, max(int(_room(part) * share), _room(part) - taken - _FRAMES))


def _room(part: QWidget) -> int:
    return part.screen().availableSize().width()
