"""Offers to make a long text that was pasted an attached file."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.i18n import tr
from app.theme import mark
from app.widgets.announce import announce
from app.widgets.buttons import icon_button, push_button
from app.widgets.labels import hint


class PasteOffer(QFrame):
    """Hidden until there is such a text, which stays where it was pasted unless the user takes the offer."""

    accepted = Signal(str)  # the text, which has been taken out of the field

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, notice="info")
        self._pasted: QTextCursor | None = None
        self._label = hint()
        self.button = push_button(tr("Attach it instead"), self._accept)
        self.close_button = icon_button("close", tr("Leave the long text in the message"), self.withdraw)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 6, 4)
        row.addWidget(self._label, 1)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignVCenter)
        self.hide()

    def offer(self, pasted: QTextCursor) -> None:
        """Offer it for the text that the cursor has selected."""
        self._pasted = pasted
        count = f"{len(pasted.selectedText()):,}"
        text = tr(
            "You pasted a long text ({count} characters). As a file it leaves room to write.", count=count
        )
        self._label.setText(text)
        self.button.setAccessibleDescription(text)
        self.show()
        announce(self, text)

    def withdraw(self) -> None:
        """There is nothing to offer any more."""
        self._pasted = None
        self.hide()

    def text_changed(self) -> None:
        """Withdraw if the text has gone."""
        if self._pasted is not None and not self._pasted.hasSelection():
            self.withdraw()

    def _accept(self) -> None:
        pasted = self._pasted
        self.withdraw()
        if pasted is not None and pasted.hasSelection():
            text = pasted.selection().toPlainText()
            pasted.removeSelectedText()
            self.accepted.emit(text)
