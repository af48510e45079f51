"""The window with the last lines of the log. It looks for new ones a few times a second, while it is seen."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.details import DetailsText
from app.i18n import tr
from app.logs.lines import MOST_LINES, LastLines, Line
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.laid_out import LaidOutDialog

LOOK_MS = 250


class LogWindow(LaidOutDialog):
    """Reads `lines`; `open_folder` shows where the whole log is."""

    def __init__(self, lines: LastLines, open_folder: Callable[[], object], parent: QWidget | None) -> None:
        super().__init__(parent)
        self._lines = lines
        self._seen = 0  # how many entries of `lines` have been looked at
        self.setWindowTitle(tr("Log – Fiddler Chat"))
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.setAccessibleName(tr("Log"))
        self.text = DetailsText("", tr("Lines of the log"), self)
        self.text.document().setMaximumBlockCount(2 * MOST_LINES)
        self.text.setUndoRedoEnabled(False)
        self.level = QComboBox(self)
        self.level.setAccessibleName(tr("Which lines"))
        for name, level in (
            (tr("Everything"), logging.NOTSET),
            (tr("Warnings and errors"), logging.WARNING),
            (tr("Errors alone"), logging.ERROR),
        ):
            self.level.addItem(name, level)
        self.level.currentIndexChanged.connect(self._begin_again)
        self.follow = QCheckBox(tr("&Follow new lines"), self)
        self.follow.setChecked(True)
        self.follow.toggled.connect(self._scroll)
        self.status = QLabel(self)
        mark(self.status, muted=True)
        label = QLabel(tr("&Show"), self)
        label.setBuddy(self.level)
        above = QHBoxLayout()
        above.addWidget(label)
        above.addWidget(self.level)
        above.addSpacing(12)
        above.addWidget(self.follow)
        above.addStretch(1)
        below = QHBoxLayout()
        below.addWidget(self.status, 1)
        self.copy = push_button(tr("&Copy"), self._copy, self)
        below.addWidget(self.copy)
        below.addWidget(push_button(tr("&Open folder"), open_folder, self))
        close = push_button(tr("Close"), self.close, self)
        close.setDefault(True)
        below.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        column.addLayout(above)
        column.addWidget(self.text, 1)
        column.addLayout(below)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)
        unit = self.fontMetrics()
        self.resize(unit.averageCharWidth() * 110, unit.height() * 30)

    def showEvent(self, event: QShowEvent) -> None:
        """Look from now on."""
        super().showEvent(event)
        self._look()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """A window that nobody sees looks at nothing."""
        self._timer.stop()
        super().hideEvent(event)

    @Slot()
    def _begin_again(self) -> None:
        self._seen = 0
        self.text.clear()
        self._look()

    @Slot()
    def _look(self) -> None:
        if self._lines.count == self._seen and not self.text.document().isEmpty():
            return
        new, self._seen = self._lines.since(self._seen)
        wanted = [line.text for line in new if self._is_wanted(line)]
        if wanted:
            bar = self.text.verticalScrollBar()
            place = bar.value()
            self.text.appendPlainText("\n".join(wanted))
            bar.setValue(place)
            self._scroll()
        empty = self.text.document().isEmpty()
        self.status.setText(tr("There is no such line.") if empty else "")
        self.copy.setEnabled(not empty)

    def _is_wanted(self, line: Line) -> bool:
        lowest: int = self.level.currentData()
        return line.level >= lowest

    @Slot()
    def _scroll(self) -> None:
        if self.follow.isChecked():
            bar = self.text.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _copy(self) -> None:
        """What is marked, or all that is shown."""
        cursor = self.text.textCursor()
        if cursor.hasSelection():
            QGuiApplication.clipboard().setText(cursor.selection().toPlainText())
        else:
            self.text.copy_all()
        self.status.setText(tr("Copied."))
