"""Shows the text of an attached file."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.attachments.form import Attachment
from app.i18n import tr, tr_count
from app.theme import theme
from app.widgets.labels import hint
from app.widgets.wrapping import wrap_mode

_CHARACTERS, _LINES = 84, 26


class AttachmentDialog(QDialog):
    """The text as the model reads it; deletes itself when it is closed."""

    def __init__(self, file: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._file = file
        self.setWindowTitle(file.name)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(file.name)
        theme().use_monospace(self.text)
        self.text.setWordWrapMode(wrap_mode(file.content))
        self.text.setPlainText(file.content)
        metrics = self.text.fontMetrics()
        self.text.setMinimumSize(metrics.averageCharWidth() * 30, metrics.lineSpacing() * 6)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self.buttons.rejected.connect(self.reject)
        copy = self.buttons.addButton(tr("Copy text"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(self._copy)
        lines = tr_count("{count} line", "{count} lines", file.lines)
        note = tr(
            "{lines}. This is what the model reads; the file on the disk may have changed.", lines=lines
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        column.addWidget(hint(note))
        column.addWidget(self.text, 1)
        column.addWidget(self.buttons)
        self.resize(metrics.averageCharWidth() * _CHARACTERS, metrics.lineSpacing() * _LINES)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._file.content)
