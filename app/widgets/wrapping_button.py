"""A button whose text takes several lines where it has no room for one."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextLayout, QTextOption
from PySide6.QtWidgets import QPushButton, QWidget


def wrapped(text: str, font: QFont, width: int) -> str:
    """`text` with line ends, so that no line is wider than `width` pixels, if its words allow that."""
    layout = QTextLayout(text, font)
    layout.setTextOption(QTextOption(Qt.AlignmentFlag.AlignLeft))
    lines = []
    layout.beginLayout()
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(1, width))
        lines.append(text[line.textStart() : line.textStart() + line.textLength()].strip())
    layout.endLayout()
    return "\n".join(lines)


class WrappingButton(QPushButton):
    """Its owner says by `fit` how wide it may be; `whole_text` is what it says, without line ends."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.whole_text = text
        self.setAccessibleName(text)

    def fit(self, width: int) -> None:
        """Be no wider than `width` pixels."""
        around = self.sizeHint().width() - self.fontMetrics().size(0, self.text()).width()
        text = wrapped(self.whole_text, self.font(), width - around)
        if text != self.text():
            self.setText(text)
