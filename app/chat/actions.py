"""The row of buttons below a message: its versions, copy, edit, answer anew, and a menu with the rest."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QToolButton, QWidget

from app.attachments.form import parse
from app.chat.again import params_again
from app.chat.code import CopyButton
from app.chat.notices import Action
from app.chat.plain import plain_text
from app.i18n import tr
from app.storage.rows import MessageRow, MessageState
from app.theme import mark, theme
from app.widgets.buttons import pop_up_below


class MessageActions(QWidget):
    """What can be done with a message. The owner says what the message is now by `show_row`."""

    action = Signal(str)  # an `Action`
    edit_requested = Signal()
    version_requested = Signal(int)  # the id of another version

    def __init__(self, content: Callable[[], str], copy_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content = content
        self._row: MessageRow | None = None
        self._last = False
        self.earlier = _button("chevron-left", tr("Earlier version"), lambda: self._turn(-1))
        self.place = QLabel()
        mark(self.place, muted=True)
        self.later = _button("chevron-right", tr("Later version"), lambda: self._turn(1))
        self.copy = CopyButton(self._written, copy_name)
        self.edit = _button("rename", tr("Edit this message"), self.edit_requested.emit)
        self.redo = _button("redo", tr("Regenerate this answer"), lambda: self.action.emit(Action.REGENERATE))
        self.go_on = _button(
            "continue", tr("Continue this answer"), lambda: self.action.emit(Action.CONTINUE)
        )
        self.more = _button(
            "more", tr("More about this message"), lambda: pop_up_below(self.more, self.menu())
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for widget in (self.earlier, self.place, self.later, self.copy, self.edit):
            row.addWidget(widget)
        for widget in (self.redo, self.go_on, self.more):
            row.addWidget(widget)

    def show_row(self, row: MessageRow, *, last: bool) -> None:
        """Offer what fits the message; nothing while it is being written."""
        self._row, self._last = row, last
        ended, answer = row.state is not MessageState.STREAMING, row.role == "assistant"
        for button in (self.edit, self.more):
            button.setVisible(ended)
        self.copy.setVisible(ended and bool(row.content))
        self.redo.setVisible(ended and answer and last)
        self.go_on.setVisible(ended and last and can_continue(row))
        several = ended and len(row.versions) > 1
        for widget in (self.earlier, self.place, self.later):
            widget.setVisible(several)
        if several:
            number, count = row.versions.index(row.id) + 1, len(row.versions)
            self.place.setText(f"{number}/{count}")
            said = tr("Version {number} of {count}", number=number, count=count)
            self.place.setAccessibleName(said)
            self.earlier.setAccessibleDescription(said)
            self.later.setAccessibleDescription(said)
            self.earlier.setEnabled(number > 1)
            self.later.setEnabled(number < count)

    def menu(self) -> QMenu:
        """The rest of what can be done."""
        menu = QMenu(self)
        menu.setAccessibleName(tr("More about this message"))
        row = self._row
        answer = row is not None and row.role == "assistant"

        def add(icon: str, text: str, run: Callable[[], object]) -> None:
            action = menu.addAction(text)
            action.triggered.connect(lambda: run())
            theme().set_icon(action, icon)

        if answer:
            add("copy", tr("Copy as Markdown"), lambda: _to_clipboard(self._content()))
            add("copy", tr("Copy as plain text"), lambda: _to_clipboard(plain_text(self._content())))
            add("redo", tr("Regenerate this answer"), lambda: self.action.emit(Action.REGENERATE))
            if self._last and row is not None and row.content.strip():
                add("continue", tr("Continue this answer"), lambda: self.action.emit(Action.CONTINUE))
            if row is not None and params_again(row) is not None:
                add("redo", tr("Answer again with the same seed"), lambda: self.action.emit(Action.AGAIN))
            add("info", tr("Details and seed…"), lambda: self.action.emit(Action.ABOUT))
        else:
            add("copy", tr("Copy message"), self.copy.copy)
            if self._written() != self._content():
                add("copy", tr("Copy message with its files"), lambda: _to_clipboard(self._content()))
        add("rename", tr("Edit this message"), self.edit_requested.emit)
        add("delete", tr("Delete this question and its answer"), lambda: self.action.emit(Action.DELETE))
        return menu

    def _written(self) -> str:
        """What is copied: the words of a question without its files, unless there is nothing else."""
        content = self._content()
        question = self._row is not None and self._row.role == "user"
        return (parse(content).text or content) if question else content

    def _turn(self, step: int) -> None:
        if self._row is not None:
            versions = self._row.versions
            self.version_requested.emit(versions[versions.index(self._row.id) + step])


def can_continue(row: MessageRow) -> bool:
    """Whether an answer was cut off: one that the model itself ended has nothing to go on with."""
    return row.role == "assistant" and bool(row.content.strip()) and row.reason != "eos"


def _to_clipboard(text: str) -> None:
    QGuiApplication.clipboard().setText(text)


def _button(icon: str, name: str, run: Callable[[], object]) -> QToolButton:
    button = QToolButton()
    button.setAutoRaise(True)
    button.setToolTip(name)
    button.setAccessibleName(name)
    button.setIconSize(QSize(16, 16))
    # Turning over has an end on either side, which must be told from what can be pressed.
    theme().set_icon(button, icon, "text" if icon.startswith("chevron") else "muted")
    button.clicked.connect(lambda: run())
    return button
