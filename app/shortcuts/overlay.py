"""The keys, laid over the window in groups. Escape closes it, and so does going elsewhere."""

from __future__ import annotations

from itertools import groupby

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from app.focus import move_focus
from app.i18n import tr
from app.shortcuts.book import Entry, shown
from app.shortcuts.shortcuts import Shortcuts
from app.theme import mark, theme
from app.widgets.frames import scrolling
from app.widgets.labels import heading, title

_MARGIN = 32  # pixels between the card and the window's edges, at least
_WIDTH_IN_CHARACTERS = 130


class ShortcutsOverlay(QWidget):
    """Hidden until `toggle`; made anew each time, so that it shows the keys as they are."""

    def __init__(self, shortcuts: Shortcuts, window: QWidget) -> None:
        super().__init__(window)
        self._shortcuts, self._window = shortcuts, window
        self._before: QWidget | None = None  # what had the focus
        self._area: QScrollArea | None = None
        self._page = QWidget(self)  # what the area shows
        self.setAccessibleName(tr("Keyboard shortcuts"))
        self.card = QFrame(self)
        mark(self.card, card=True)
        self.card.setAutoFillBackground(True)
        self.close_button = QToolButton()
        theme().set_icon(self.close_button, "close", "muted")
        self.close_button.setAccessibleName(tr("Close the list of shortcuts"))
        self.close_button.setToolTip(tr("Close (Escape)"))
        self.close_button.clicked.connect(self.close_overlay)
        head = self._head = QHBoxLayout()
        head.addWidget(title(tr("Keyboard shortcuts"), self), 1)
        head.addWidget(self.close_button)
        self._column = QVBoxLayout(self.card)
        self._column.setContentsMargins(24, 18, 18, 18)
        self._column.setSpacing(12)
        self._column.addLayout(head)
        self.hide()
        window.installEventFilter(self)
        QApplication.instance().focusChanged.connect(self._on_focus_changed)  # type: ignore[union-attr]

    def toggle(self) -> None:
        """Show the keys, or hide them."""
        if self.isVisible():
            self.close_overlay()
        else:
            self._open()

    @Slot()
    def close_overlay(self) -> None:
        """Hide, and give the focus back."""
        if self.isHidden():
            return
        before, self._before = self._before, None
        self.hide()
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.PopupFocusReason)

    def focusNextPrevChild(self, next: bool) -> bool:
        """Tab stays within the list."""
        return move_focus(self.card, forward=next)

    def event(self, event: QEvent) -> bool:
        """Escape is for this list, before it is a shortcut of the window."""
        override = event.type() is QEvent.Type.ShortcutOverride
        if override and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_overlay()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click beside the list closes it."""
        if not self.card.geometry().contains(event.position().toPoint()):
            self.close_overlay()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Darken the window behind."""
        QPainter(self).fillRect(self.rect(), QColor(0, 0, 0, 110))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as the window."""
        if event.type() is QEvent.Type.Resize and self.isVisible():
            self._place()
        return False

    def _open(self) -> None:
        self._before = QApplication.focusWidget()
        if self._area is not None:
            self._column.removeWidget(self._area)
            self._area.deleteLater()
        entries = [entry for entry in self._shortcuts.entries() if entry.keys]
        self._page = _groups(entries)
        area = self._area = scrolling(self._page)
        for part in (self._page, area.viewport()):  # on the card's own colour
            part.setAutoFillBackground(False)
        area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # arrows scroll, and a screen reader has what to read
        area.setAccessibleName(tr("Keyboard shortcuts"))
        area.setAccessibleDescription(" ".join(f"{entry.text}: {shown(entry.keys)}." for entry in entries))
        self._column.addWidget(area, 1)
        self._place()
        self.show()
        self.raise_()
        area.setFocus(Qt.FocusReason.PopupFocusReason)

    def _place(self) -> None:
        self.setGeometry(self._window.rect())
        width = min(self.fontMetrics().averageCharWidth() * _WIDTH_IN_CHARACTERS, self.width() - 2 * _MARGIN)
        margins = self._column.contentsMargins()
        layout = self._page.layout()
        assert layout is not None
        wanted = layout.totalHeightForWidth(width - margins.left() - margins.right())
        around = margins.top() + self._head.sizeHint().height() + self._column.spacing() + margins.bottom()
        lines = 2 * self.card.frameWidth()
        height = min(wanted + around + lines, self.height() - 2 * _MARGIN)
        self.card.setGeometry((self.width() - width) // 2, (self.height() - height) // 2, width, height)

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, _old: QWidget | None, now: QWidget | None) -> None:
        if (
            self.isVisible()
            and now is not None
            and not self.isAncestorOf(now)
            and now.window() is self.window()
        ):
            self._before = None  # the focus is where the user wants it
            self.close_overlay()


def _groups(entries: list[Entry]) -> QWidget:
    """The groups in two columns of about the same height."""
    page = QWidget()
    row = QHBoxLayout(page)
    row.setContentsMargins(0, 0, 12, 0)
    row.setSpacing(40)
    groups = [(name, list(group)) for name, group in groupby(entries, key=lambda entry: entry.group)]
    columns = [QVBoxLayout(), QVBoxLayout()]
    for column in columns:
        column.setSpacing(6)
    heights = [len(group) + 2 for _, group in groups]
    left = min(range(len(groups) + 1), key=lambda count: max(sum(heights[:count]), sum(heights[count:])))
    for place, (name, group) in enumerate(groups):
        column = columns[0 if place < left else 1]
        head = heading(name, page)
        head.setWordWrap(False)
        column.addWidget(head)
        column.addLayout(_grid(group))
        column.addSpacing(14)
    for column in columns:
        column.addStretch(1)
        row.addLayout(column, 1)
    return page


def _grid(group: list[Entry]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(6)
    grid.setColumnStretch(0, 1)
    for row, entry in enumerate(group):
        text = QLabel(entry.text)
        text.setWordWrap(True)
        keys = QLabel(shown(entry.keys))
        mark(keys, keys=True)
        grid.addWidget(text, row, 0)
        grid.addWidget(keys, row, 1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return grid
