"""Editing a message at its place: its text in a field, and what becomes of the change."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.attachments.field import AttachmentField
from app.attachments.form import Parts, compose, parse
from app.composer.edit import MessageEdit
from app.i18n import tr
from app.theme import mark, theme
from app.widgets.buttons import push_button


class MessageEditor(QFrame):
    """Ctrl+Enter or the button saves, Escape leaves the message as it was.

    `files`: they can be attached, as to questions; an answer is text alone.
    """

    saved = Signal(str)
    cancelled = Signal()
    changed = Signal(str)  # the text as it is being changed; "" where it is as it was

    def __init__(
        self, text: str, save: str, consequence: str, *, files: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        mark(self, composer=True, focused=False)
        self._before = text
        self._parts = parse if files else partial(Parts, ())
        parts = self._parts(text)
        self.files = AttachmentField()
        self.edit = MessageEdit()
        self.files.left.connect(lambda: self.edit.setFocus(Qt.FocusReason.OtherFocusReason))
        self.edit.takes_files = files
        self.edit.files_pasted.connect(self.files.add_paths)
        self.edit.huge_pasted.connect(self.files.add_text)
        self.edit.send_on_enter = False  # what is edited often has several lines
        self.edit.setPlaceholderText("")
        self.edit.setAccessibleName(tr("Edit the message"))
        self.edit.setAccessibleDescription(consequence)
        self.edit.show_text(parts.text)
        self.edit.submitted.connect(self._submit)
        self.edit.focus_changed.connect(lambda focused: mark(self, focused=focused))
        self.edit.textChanged.connect(self._on_changed)
        self.edit.installEventFilter(self)
        hint = QLabel(consequence)
        hint.setWordWrap(True)
        mark(hint, muted=True)
        theme().scale_font(hint, 0.88)
        self.cancel_button = push_button(tr("Cancel"), self.cancelled.emit)
        self.cancel_button.setToolTip(tr("Leave the message as it was (Escape)"))
        self.save_button = push_button(save, self._submit, primary=True)
        self.save_button.setToolTip(tr("Ctrl+Enter"))
        bottom = QHBoxLayout()
        bottom.addWidget(hint, 1)
        bottom.addWidget(self.cancel_button, 0, Qt.AlignmentFlag.AlignBottom)
        bottom.addWidget(self.save_button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 13, 10, 10)
        column.addWidget(self.files)
        column.addWidget(self.edit)
        column.addLayout(bottom)
        self.files.set_files(parts.attachments)  # in its place by now: else it would be a window
        self.files.changed.connect(self._on_changed)
        self._show_state()

    @property
    def content(self) -> str:
        """The message as it is saved, with its files."""
        return compose(self.files.files, self.edit.toPlainText())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape ends the editing; elsewhere in the window it stops an answer."""
        if watched is self.edit and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            if event.type() is QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() is QEvent.Type.KeyPress:
                self.cancelled.emit()
                return True
        return super().eventFilter(watched, event)

    def take_up(self, text: str) -> None:
        """Go on with a change that was begun earlier."""
        parts = self._parts(text)
        self.files.set_files(parts.attachments)
        self.edit.show_text(parts.text)

    def _submit(self) -> None:
        if self.save_button.isEnabled() and not self.files.asks_to_wait():
            self.saved.emit(self.content)

    def _on_changed(self) -> None:
        self._show_state()
        self.changed.emit("" if self.content == self._before else self.content)

    def _show_state(self) -> None:
        content = self.content
        self.save_button.setEnabled(bool(content.strip()) and content != self._before)
