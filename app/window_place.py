"""Where the main window stood and how its parts were divided, from one start to the next."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSize
from PySide6.QtWidgets import QMainWindow, QSplitter

from app.settings import SettingsStore, registry

_SIZE = QSize(1280, 820)  # at the first start, if the screen has room for it


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
    if not splitter.restoreState(_decode(settings.get(registry.WINDOW_STATE))):
        width = window.width()
        panel, sidebar = min(320, width // 4), min(270, width // 5)
        splitter.setSizes([sidebar, width - sidebar - panel, panel])


def _encode(data: QByteArray) -> str:
    return bytes(data.toBase64().data()).decode("ascii")


def _decode(text: str) -> QByteArray:
    return QByteArray.fromBase64(text.encode("ascii", "ignore"))
