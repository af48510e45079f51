"""Where the main window stood and how its parts were divided, from one start to the next."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QByteArray, QEvent, QObject, QRect, QSize
from PySide6.QtWidgets import QApplication, QMainWindow, QSplitter, QWidget

from app.settings import SettingsStore, registry

_SIZE = QSize(1280, 820)  # at the first start, if the screen has room for it
_GRIP = QSize(120, 32)  # pixels of the window's upper edge that must be on a screen, to move it by


def save_place(window: QMainWindow, splitter: QSplitter, settings: SettingsStore) -> None:
    """Keep both in the settings. Raises `FileError`."""
    settings.update(
        {
            registry.WINDOW_GEOMETRY.key: _encode(window.saveGeometry()),
            registry.WINDOW_STATE.key: _encode(splitter.saveState()),
        }
    )


def restore_place(window: QMainWindow, splitter: QSplitter, settings: SettingsStore) -> None:
    """Bring both back; without saved ones, or with ones that do not fit, choose them by the screen's size."""
    geometry = settings.get(registry.WINDOW_GEOMETRY)
    if not geometry or not window.restoreGeometry(_decode(geometry)):
        window.resize(_SIZE.boundedTo(window.screen().availableSize() * 0.9))
    elif not window.isMaximized() and not window.isFullScreen():
        screens = [screen.availableGeometry() for screen in QApplication.screens()]
        window.setGeometry(onto_screens(window.geometry(), screens))
    if not splitter.restoreState(_decode(settings.get(registry.WINDOW_STATE))):
        width = window.width()
        panel, sidebar = min(320, width // 4), min(270, width // 5)
        splitter.setSizes([sidebar, width - sidebar - panel, panel])


def onto_screens(window: QRect, screens: Sequence[QRect]) -> QRect:
    """Where a window is to be so that it can be seen and moved, on the screens that there are now.

    It stays where it is if a piece of its upper edge is on one of them, and it fits there. Otherwise it
    goes onto the one that has most of it, or the first.
    """
    edge = QRect(window.topLeft(), QSize(window.width(), _GRIP.height()))
    for screen in screens:
        seen = edge.intersected(screen)
        fits = window.width() <= screen.width() and window.height() <= screen.height()
        if fits and seen.width() >= _GRIP.width() and seen.height() >= _GRIP.height():
            return window
    if not screens:
        return window

    def share(screen: QRect) -> int:
        common = window.intersected(screen)
        return common.width() * common.height() if common.isValid() else 0

    return moved_into(window, max(screens, key=share))


def moved_into(window: QRect, screen: QRect) -> QRect:
    """Where a window is wholly on a screen, as near as can be; smaller if it is larger than that."""
    size = window.size().boundedTo(screen.size())
    left = min(max(window.left(), screen.left()), screen.left() + screen.width() - size.width())
    top = min(max(window.top(), screen.top()), screen.top() + screen.height() - size.height())
    return QRect(left, top, size.width(), size.height())


class WithinScreen(QObject):
    """Keeps a window's least size, which follows from its parts, within its screen: parts give way then."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._least = QSize(0, 0)  # that was set here
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The layout has just given the window another least size."""
        if watched is self._window and event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Show):
            self._bound()
        return super().eventFilter(watched, event)

    def _bound(self) -> None:
        window, layout = self._window, self._window.layout()
        if layout is None:
            return
        room = window.screen().availableSize() - (window.frameGeometry().size() - window.size())
        needed = layout.totalMinimumSize()
        least = QSize(  # 0 leaves it to the layout
            room.width() if needed.width() > room.width() else 0,
            room.height() if needed.height() > room.height() else 0,
        )
        if least == self._least:
            return
        self._least = least
        window.setMinimumSize(least)
        layout.update()
        if not least.isNull():
            window.resize(window.size().boundedTo(room))


def _encode(data: QByteArray) -> str:
    return bytes(data.toBase64().data()).decode("ascii")


def _decode(text: str) -> QByteArray:
    return QByteArray.fromBase64(text.encode("ascii", "ignore"))
