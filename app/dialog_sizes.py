"""Dialogs that are open while font or zoom change: each grows with its contents, and back with them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QRect, QSize, Slot
from PySide6.QtWidgets import QApplication, QDialog

from app.theme import theme
from app.window_place import moved_into


@dataclass(frozen=True)
class _Sized:
    """A dialog's size in a font of so many points, whether its texts filled it, and its size since."""

    points: float
    size: QSize
    full: bool
    given: QSize


class DialogSizes(QObject):
    """Gives every open dialog the room that it would have if it were opened in the new font and zoom.

    What does not fit on the screen scrolls, or was too large before; none becomes smaller than it was.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._sized: weakref.WeakKeyDictionary[QDialog, _Sized] = weakref.WeakKeyDictionary()
        theme().font_changing.connect(self._look)
        theme().changed.connect(self._fit)

    @Slot()
    def _look(self) -> None:
        """Remember sizes, unless they are those that were given here."""
        for dialog in _open():
            sized, size = self._sized.get(dialog), dialog.size()
            if sized is None or sized.given != size:
                needed = _needed_height(dialog, size.width())
                self._sized[dialog] = _Sized(_points(), size, size.height() <= needed, size)

    @Slot()
    def _fit(self) -> None:
        for dialog in _open():
            sized = self._sized.get(dialog)
            if sized is not None:
                _grow(dialog, sized)
                self._sized[dialog] = replace(sized, given=dialog.size())


def _grow(dialog: QDialog, sized: _Sized) -> None:
    size, factor = sized.size, max(1, _points() / sized.points)
    screen = dialog.screen().availableGeometry()
    frame = dialog.frameGeometry().size() - dialog.size()
    room = screen.size() - frame
    width = min(round(size.width() * factor), room.width())
    full = max(size.height(), _needed_height(dialog, width))
    height = full if sized.full else round(size.height() * factor)
    dialog.resize(width, min(height, room.height()))
    place = QRect(dialog.pos(), dialog.size() + frame)
    if not screen.contains(place):
        dialog.move(moved_into(place, screen).topLeft())


def _needed_height(dialog: QDialog, width: int) -> int:
    """What its texts need in this width; 0 where nothing says so."""
    layout = dialog.layout()
    return layout.totalHeightForWidth(width) if layout is not None and layout.hasHeightForWidth() else 0


def _open() -> list[QDialog]:
    return [
        widget
        for widget in QApplication.topLevelWidgets()
        if isinstance(widget, QDialog) and widget.isVisible() and not widget.isMaximized()
    ]


def _points() -> float:
    return QApplication.font().pointSizeF()
