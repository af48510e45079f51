"""The message boxes: an error, a shortage that may be overridden, a question before something drastic.

None of them blocks: each opens over its window and calls back. All are shown the same way: what happened,
why, what to do, with details that can be copied.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPushButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.widgets.labels import TextLabel
from app.widgets.problem import ProblemText
from engine.errors import EngineError, ShortageError

_Role = QDialogButtonBox.ButtonRole
_WIDTH_IN_CHARACTERS = 62
_CHARACTERS_BESIDE_SIGN = 46  # of an error: what the width above has room for


class MessageDialog(QDialog):
    """A message with buttons. Escape and the close button are "no"; it deletes itself when closed."""

    def __init__(self, parent: QWidget | None, window_title: str, content: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(window_title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.buttons = QDialogButtonBox(self)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addWidget(content)
        layout.addWidget(self.buttons)
        # Not the dialog's own least width: that would also count where the content needs more.
        layout.addStrut(self.fontMetrics().averageCharWidth() * _WIDTH_IN_CHARACTERS)

    def add_button(
        self, text: str, role: QDialogButtonBox.ButtonRole, *, default: bool = False
    ) -> QPushButton:
        """Add a button; Enter presses the default one, which also has the focus at first."""
        button = self.buttons.addButton(text, role)
        button.setAutoDefault(default)
        button.setDefault(default)
        if default:
            button.setFocus()
        return button


def show_error(
    parent: QWidget | None, error: EngineError, *, retry: Callable[[], None] | None = None
) -> MessageDialog:
    """Show an error of the engine, the storage or the program; with `retry`, offer to try again."""
    text = ProblemText(most=_CHARACTERS_BESIDE_SIGN)
    text.set_error(error)
    dialog = MessageDialog(parent, tr("Fiddler Chat"), text)
    _add_copy(dialog, text)
    if retry is not None:
        dialog.add_button(tr("Try again"), _Role.AcceptRole, default=True)
        dialog.accepted.connect(retry)
    dialog.add_button(tr("Close"), _Role.RejectRole, default=retry is None)
    return _opened(dialog, error.what, str(error))


def ask_anyway(parent: QWidget | None, error: ShortageError, go_on: Callable[[], None]) -> MessageDialog:
    """Show what is missing and what would help; `go_on` is called if the user wants to do it anyway."""
    text = ProblemText(most=_CHARACTERS_BESIDE_SIGN)
    text.set_error(error)
    dialog = MessageDialog(parent, tr("Not enough room"), text)
    _add_copy(dialog, text)
    dialog.add_button(tr("Do it anyway"), _Role.AcceptRole)
    dialog.add_button(tr("Cancel"), _Role.RejectRole, default=True)
    dialog.accepted.connect(go_on)
    return _opened(dialog, error.what, str(error))


def report(
    parent: QWidget | None,
    error: EngineError,
    *,
    retry: Callable[[], None] | None = None,
    anyway: Callable[[], None] | None = None,
) -> MessageDialog:
    """Show any error in the fitting way: a shortage can be overridden where `anyway` is given."""
    if isinstance(error, ShortageError) and anyway is not None:
        return ask_anyway(parent, error, anyway)
    return show_error(parent, error, retry=retry)


def confirm(
    parent: QWidget | None,
    question: str,
    consequence: str,
    action: str,
    go_on: Callable[[], None],
    *,
    cancel: str = "",
) -> MessageDialog:
    """Ask before something that cannot be taken back. `action` is a verb ("Delete"), never "Yes".

    Cancel (or the words given for it) has the focus, so that Enter pressed by mistake does nothing.
    """
    content = QWidget()
    column = QVBoxLayout(content)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(TextLabel(question, content, bold=True))
    column.addWidget(TextLabel(consequence, content))
    dialog = MessageDialog(parent, tr("Fiddler Chat"), content)
    dialog.add_button(action, _Role.AcceptRole)
    dialog.add_button(cancel or tr("Cancel"), _Role.RejectRole, default=True)
    dialog.accepted.connect(go_on)
    return _opened(dialog, question, consequence)


def _add_copy(dialog: MessageDialog, text: ProblemText) -> None:
    button = dialog.add_button(tr("Copy details"), _Role.ActionRole)
    button.clicked.connect(text.copy_details)
    QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), dialog, text.copy_details)


def _opened(dialog: MessageDialog, name: str, description: str) -> MessageDialog:
    dialog.setAccessibleName(name)
    dialog.setAccessibleDescription(description)
    dialog.open()
    return dialog
