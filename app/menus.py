"""The window's actions, and the menus made of them. Their keys: see `app.shortcuts`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QMainWindow, QVBoxLayout, QWidget

from app.i18n import tr
from app.theme import heading, mark

Handler = Callable[[], object]


@dataclass(frozen=True)
class Command:
    """An entry of a menu: a stable name, the text, the keys it comes with ("" for none), and what it does."""

    name: str
    text: str
    keys: str
    run: Handler
    checkable: bool = False


class Menus:
    """Builds menus from commands and keeps the actions by name."""

    def __init__(self, window: QMainWindow) -> None:
        self._window = window
        self.actions: dict[str, QAction] = {}
        self.groups: list[tuple[str, list[Command]]] = []  # each menu's title and commands

    def add(self, title: str, commands: list[Command | None]) -> None:
        """Add a menu; None is a line between entries."""
        menu = self._window.menuBar().addMenu(title)
        self.groups.append((title, [command for command in commands if command is not None]))
        for command in commands:
            if command is None:
                menu.addSeparator()
                continue
            action = QAction(command.text, self._window)
            action.setCheckable(command.checkable)
            action.triggered.connect(_without_argument(command.run))
            menu.addAction(action)
            self.actions[command.name] = action


def plain_text(text: str) -> str:
    """A menu's text without the mark of its letter."""
    return text.replace("&", "")


def _without_argument(run: Handler) -> Callable[[bool], None]:
    def slot(_checked: bool = False) -> None:
        run()

    return slot


class AboutDialog(QDialog):
    """What this program is, its version, and whose ideas it stands on; deletes itself when it is closed."""

    def __init__(self, version: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("About Fiddler Chat"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        text = QLabel(
            tr(
                "Chats with Mixture-of-Experts models that are larger than your graphics card. It measures "
                "this computer and decides for each expert whether to run it on the GPU or on the CPU.\n\n"
                "The method is Fiddler: CPU-GPU Orchestration for Fast Inference of Mixture-of-Experts "
                "Models (arXiv 2402.07033).\n\n"
                "Everything you write stays on this computer. Licensed under the Apache License 2.0."
            )
        )
        text.setWordWrap(True)
        text.setMinimumWidth(self.fontMetrics().averageCharWidth() * 60)
        label = QLabel(tr("Version {version}", version=version))
        mark(label, muted=True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(14)
        for widget in (heading(QLabel(tr("Fiddler Chat")), 1.5), label, text, buttons):
            column.addWidget(widget)
