"""What both roles' messages have in common: the saved row, its buttons, editing it at its place."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.chat.actions import MessageActions
from app.chat.boundary import BoundaryLine
from app.chat.editor import MessageEditor
from app.i18n import tr
from app.storage.rows import MessageRow


@dataclass(frozen=True)
class Words:
    """What the shared parts call things for one role: copying, saving an edit, and what that does."""

    copy: str
    save: str
    consequence: str
    files: bool  # whether files can be attached


def question_words() -> Words:
    """For what the user wrote."""
    consequence = tr("The new version is answered anew. The old one stays, with what followed it.")
    return Words(tr("Copy message"), tr("Send"), consequence, files=True)


def answer_words() -> Words:
    """For what the model wrote."""
    consequence = tr("The chat then goes on from the new version. The old one stays.")
    return Words(tr("Copy answer"), tr("Save"), consequence, files=False)


class MessageView(QWidget):
    """A message without its text: the line above it, its buttons, the field in which it is changed."""

    action = Signal(str)  # an `Action`
    version_requested = Signal(int)  # the id of another version of this message
    edited = Signal(str)  # the new text; this view stays as it is until the message has changed
    edit_changed = Signal(str)  # what the text is being changed to; "" for not at all
    edit_discarded = Signal(str)  # what it was being changed to when the user gave that up

    def __init__(self, row: MessageRow, words: Words, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row = row
        self._words = words
        self.editor: MessageEditor | None = None
        self.boundary: BoundaryLine | None = None
        self.tools = MessageActions(self.content, words.copy)
        self.tools.action.connect(self.action)
        self.tools.version_requested.connect(self.version_requested)
        self.tools.edit_requested.connect(self.begin_edit)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)

    def content(self) -> str:
        """The message as text, for the clipboard."""
        return self.row.content

    def set_last(self, last: bool) -> None:
        """Whether this is the last message: only its answer can be continued."""
        self.tools.show_row(self.row, last=last)

    def show_boundary(self, shown: bool) -> None:
        """Draw a line above: the model sees nothing before this message."""
        if shown and self.boundary is None:
            self.boundary = BoundaryLine()
            self._column.insertWidget(0, self.boundary)
        elif not shown and self.boundary is not None:
            self._column.removeWidget(self.boundary)
            self.boundary.hide()
            self.boundary.deleteLater()
            self.boundary = None

    @Slot()
    def begin_edit(self) -> None:
        """Show the text in a field instead; nothing changes before it is saved."""
        editor = self._open_editor()
        if editor is not None:
            editor.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def go_on_editing(self, text: str) -> None:
        """Show a field with a change that was begun earlier; the keyboard stays where it is."""
        editor = self._open_editor()
        if editor is not None:
            editor.take_up(text)

    def _open_editor(self) -> MessageEditor | None:
        """A new editor; None if there is one already."""
        if self.editor is not None:
            return None
        words = self._words
        editor = MessageEditor(self.content(), words.save, words.consequence, files=words.files)
        self.editor = editor
        editor.saved.connect(self.edited)
        editor.cancelled.connect(self._end_edit)
        editor.changed.connect(self.edit_changed)
        self._show_parts(False)
        self._column.insertWidget(0 if self.boundary is None else 1, editor)
        return editor

    def _end_edit(self) -> None:
        if self.editor is None:
            return
        editor, self.editor = self.editor, None
        given_up = editor.content
        self._column.removeWidget(editor)
        editor.hide()
        editor.deleteLater()
        self._show_parts(True)
        self.edit_changed.emit("")
        if given_up != self.content():
            self.edit_discarded.emit(given_up)
        self.tools.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_parts(self, shown: bool) -> None:
        """Show or hide what the editor stands for."""
        self.tools.setVisible(shown)
