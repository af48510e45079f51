"""One model to choose on the plan page: a card with a radio button that can be clicked anywhere."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QRadioButton, QVBoxLayout, QWidget

from app.theme import mark, theme
from app.widgets.buttons import MARK_WIDTH
from app.widgets.labels import TextLabel, hint


class ModelCard(QFrame):
    """Name, description, and one line on how it would run here. Never squeezed; grows with its text."""

    def __init__(self, name: str, description: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, card=True, chosen=False)
        self.radio = QRadioButton(name, self)
        theme().scale_font(self.radio, 1.0, bold=True)
        self.radio.setAccessibleDescription(description)
        self.radio.setAutoExclusive(False)  # the page's button group sees to it, across the cards
        self.description = hint(description, self)
        self.verdict = TextLabel(parent=self)
        for label in (self.description, self.verdict):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)  # clicks are the card's
        self._texts = texts = QVBoxLayout()
        texts.setSpacing(3)
        texts.setContentsMargins(round(MARK_WIDTH * theme().scale), 0, 0, 0)
        texts.addWidget(self.description)
        texts.addWidget(self.verdict)
        self.verdict.hide()
        self._row = QHBoxLayout()
        self._row.addWidget(self.radio, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(4)
        layout.addLayout(self._row)
        layout.addLayout(texts)

    def add_button(self, button: QPushButton) -> None:
        """Put a button at the right of the name."""
        self._row.addWidget(button)

    def take_plan(self, plan: QWidget) -> None:
        """Show the plan inside this card, below the verdict."""
        if plan.parentWidget() is not self:
            self._texts.addWidget(plan)

    def set_verdict(self, text: str, *, good: bool) -> None:
        """How it would run on this computer; a warning if not `good`."""
        if text == self.verdict.text():
            return
        self.verdict.setText(text)
        self.verdict.setVisible(bool(text))
        mark(self.verdict, tone="" if good else "warning")
        self.radio.setAccessibleDescription(f"{self.description.text()} {text}")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click anywhere on the card chooses it."""
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.radio.click()
        super().mouseReleaseEvent(event)
