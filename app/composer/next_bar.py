"""Shows the message that is sent when the answer under way has ended."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from app.attachments.form import parse
from app.i18n import tr, tr_count
from app.theme import mark, theme
from app.widgets.buttons import icon_button
from app.widgets.elided import ElidedText


class NextMessageBar(QFrame):
    """Hidden while nothing waits."""

    edit_requested = Signal()
    remove_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, chip=True)
        icon = QToolButton()  # a button only because it can carry a theme's icon
        icon.setEnabled(False)
        theme().set_icon(icon, "later", "muted")
        self.text = ElidedText()
        self.edit = icon_button("rename", tr("Edit the waiting message"), self.edit_requested.emit)
        self.remove = icon_button("close", tr("Remove the waiting message"), self.remove_requested.emit)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 2, 4, 2)
        row.setSpacing(2)
        row.addWidget(icon)
        row.addWidget(self.text, 1)
        row.addWidget(self.edit)
        row.addWidget(self.remove)
        self.hide()

    def show_message(self, message: str) -> None:
        """Show a message as it is saved; nothing for an empty one."""
        parts = parse(message)
        text = tr("Next: {message}", message=" ".join(parts.headline.split()))
        if parts.attachments and parts.text.strip():
            count = len(parts.attachments)
            files = tr_count("{count} file", "{count} files", count)
            text = tr("Next, with {files}: {message}", files=files, message=" ".join(parts.text.split()))
        self.text.setText(text)
        self.text.setAccessibleName(text)
        self.edit.setAccessibleDescription(text)
        self.remove.setAccessibleDescription(text)
        self.setVisible(bool(message))
