"""Labels with one purpose each: a page's title, running text, a quiet hint. Colours come from the palette."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.theme import mark

_SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse


class TextLabel(QLabel):
    """Plain text that wraps and can be selected with the mouse. Never interprets markup.

    `scale` is relative to the program's font size and follows it when it changes.
    """

    def __init__(
        self, text: str = "", parent: QWidget | None = None, *, scale: float = 1.0, bold: bool = False
    ) -> None:
        super().__init__(text, parent)
        self._scale, self._bold = scale, bold
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(_SELECTABLE)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._fit_font()

    def event(self, event: QEvent) -> bool:
        """Follow the program's font."""
        if event.type() is QEvent.Type.ApplicationFontChange:
            self._fit_font()
        return super().event(event)

    def _fit_font(self) -> None:
        font = QGuiApplication.font()
        if self._scale != 1.0:
            font.setPointSizeF(max(1.0, font.pointSizeF()) * self._scale)
        font.setBold(self._bold)
        self.setFont(font)


def title(text: str, parent: QWidget | None = None) -> TextLabel:
    """A page's heading."""
    return TextLabel(text, parent, scale=1.5, bold=True)


def heading(text: str, parent: QWidget | None = None) -> TextLabel:
    """The heading of a part of a page."""
    return TextLabel(text, parent, bold=True)


def hint(text: str = "", parent: QWidget | None = None) -> TextLabel:
    """Quiet text: an explanation beside something more important."""
    label = TextLabel(text, parent)
    mark(label, muted=True)
    return label


class ElidedLabel(QLabel):
    """One line, with the middle left out when it does not fit: paths. The tool tip has all of it."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._full = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.set_full_text(text)

    def full_text(self) -> str:
        """The whole text, whatever is visible of it."""
        return self._full

    def set_full_text(self, text: str) -> None:
        """Show `text`, as much as fits."""
        self._full = text
        self.setToolTip(text)
        self.setAccessibleName(text)
        self._elide()

    def minimumSizeHint(self) -> QSize:
        """A few characters; the layout gives what it has."""
        return QSize(QFontMetrics(self.font()).averageCharWidth() * 12, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the text to the new width."""
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics = QFontMetrics(self.font())
        self.setText(metrics.elidedText(self._full, Qt.TextElideMode.ElideMiddle, max(40, self.width())))
