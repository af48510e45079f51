"""Brings the window to the front, for a start that found it running or a notice that was clicked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

if TYPE_CHECKING:
    from app.desktop.handover import Handover
    from app.window import MainWindow


def come_forward(window: MainWindow, handover: Handover) -> None:
    """Show the window and import the files that another start was given."""
    raise_window(window, handover.token)
    if handover.files:
        window.importing.import_files(handover.files)


def raise_window(window: QWidget, token: str = "") -> None:
    """Show `window` in front, whatever state it is in, or the dialog that is open over it.

    `token` is what a Wayland desktop gave to whoever asks: without it, it only marks the window as wanting
    attention, which is its decision.
    """
    if token:
        os.environ["XDG_ACTIVATION_TOKEN"] = token  # Qt takes it from there, once
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    front = QApplication.activeModalWidget() or window
    front.raise_()
    front.activateWindow()
