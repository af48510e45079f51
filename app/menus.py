"""The window's actions with their shortcuts, and the menus made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QLabel,
    QMainWindow,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.theme import heading, mark

Handler = Callable[[], object]


@dataclass(frozen=True)
class Command:
    """An entry of a menu: a stable name, the text, its keys ("" for none), and what it does."""

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

    def add(self, title: str, commands: list[Command | None]) -> None:
        """Add a menu; None is a line between entries."""
        menu = self._window.menuBar().addMenu(title)
        for command in commands:
            if command is None:
                menu.addSeparator()
                continue
            action = QAction(command.text, self._window)
            action.setCheckable(command.checkable)
            if command.keys:
                action.setShortcut(QKeySequence(command.keys))
            action.triggered.connect(_without_argument(command.run))
            menu.addAction(action)
            self.actions[command.name] = action


def _without_argument(run: Handler) -> Callable[[bool], None]:
    def slot(_checked: bool = False) -> None:
        run()

    return slot


class _InfoDialog(QDialog):
    """Something to read, with one button; deletes itself when it is closed."""

    def __init__(self, title: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.content = QVBoxLayout()
        self.content.setSpacing(14)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(16)
        column.addLayout(self.content)
        column.addWidget(buttons)


class ShortcutsDialog(_InfoDialog):
    """Lists every shortcut: those of the menus, and those of the places where they apply."""

    def __init__(self, actions: list[QAction], parent: QWidget | None = None) -> None:
        super().__init__(tr("Keyboard shortcuts"), parent)
        rows = [
            (
                action.text().replace("&", ""),
                action.shortcut().toString(QKeySequence.SequenceFormat.NativeText),
            )
            for action in actions
            if not action.shortcut().isEmpty()
        ]
        rows += [
            (tr("Send the message"), tr("Enter")),
            (tr("New line in the message"), tr("Shift+Enter")),
            (tr("Rename the chosen chat"), "F2"),
            (tr("Delete the chosen chat"), tr("Del")),
            (tr("Walk over the map of experts"), tr("Arrow keys")),
        ]
        grid = QGridLayout()
        grid.setHorizontalSpacing(32)
        grid.setVerticalSpacing(8)
        for row, (text, keys) in enumerate(rows):
            key_label = QLabel(keys)
            mark(key_label, muted=True)
            grid.addWidget(QLabel(text), row, 0)
            grid.addWidget(key_label, row, 1)
        self.content.addWidget(heading(QLabel(tr("Keyboard shortcuts")), 1.3))
        self.content.addLayout(grid)


class AboutDialog(_InfoDialog):
    """What this program is, its version, and whose ideas it stands on."""

    def __init__(self, version: str, parent: QWidget | None = None) -> None:
        super().__init__(tr("About Fiddler Chat"), parent)
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
        for widget in (heading(QLabel(tr("Fiddler Chat")), 1.5), label, text):
            self.content.addWidget(widget)
