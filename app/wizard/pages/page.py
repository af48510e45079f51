"""What all pages have in common: a title, an introduction, content, and events for the flow."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.widgets.labels import TextLabel, hint, title
from app.wizard.state import FlowState


class Page(QWidget):
    """One page. `send` carries what the user did; `show_state` is called whenever something changed."""

    send = Signal(object)

    def __init__(self, heading: str, introduction: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heading: TextLabel = title(heading, self)
        self.introduction: TextLabel = hint(introduction, self)
        self.content = QVBoxLayout(self)
        self.content.setSpacing(12)
        self.content.addWidget(self.heading)
        self.content.addWidget(self.introduction)
        self.setAccessibleName(heading)
        self.setAccessibleDescription(introduction)

    def show_state(self, state: FlowState) -> None:
        """Show `state`. Called often: only touch what has changed."""
        raise NotImplementedError

    def news(self) -> QWidget | None:
        """The part that must be visible after a change: a problem if there is one."""
        return None

    def first_focus(self) -> QWidget | None:
        """What on this page the keyboard should start with; None: the buttons below."""
        return None
