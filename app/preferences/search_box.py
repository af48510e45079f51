"""The field that finds settings, with its results below."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.i18n import tr, tr_count
from app.preferences.search import Entry, find
from app.theme import mark
from app.widgets.labels import hint

_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class SearchBox(QWidget):
    """`searching` tells when results take the place of the pages.

    `chosen` carries the entry to show, `entered` that where the user wants to go on.
    """

    searching = Signal(bool)
    chosen = Signal(object)  # Entry
    entered = Signal(object)  # Entry

    def __init__(self, entries: Sequence[Entry], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries = entries
        self._hits: list[Entry] = []
        self.field = QLineEdit(self)
        self.field.setPlaceholderText(tr("Search settings"))
        self.field.setAccessibleName(tr("Search settings"))
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self._search)
        self.field.installEventFilter(self)
        self.results = QListWidget(self)
        self.results.setAccessibleName(tr("Settings found"))
        self.results.setWordWrap(True)
        mark(self.results, pages=True)
        self.results.currentRowChanged.connect(self._choose)
        self.results.itemClicked.connect(lambda _: self._choose(self.results.currentRow()))
        self.results.installEventFilter(self)
        self.outcome = hint("", self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.field)
        column.addWidget(self.outcome)
        column.addWidget(self.results, 1)
        column.addStretch(0)  # what is said stays below the field
        self._show_results()

    @property
    def hits(self) -> list[Entry]:
        """What is found, best first."""
        return list(self._hits)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Down and Enter go on to the results and from there; Escape ends the search, then the dialog."""
        if not isinstance(event, QKeyEvent) or event.type() is not QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        key = Qt.Key(event.key())
        if key is Qt.Key.Key_Escape and self.field.text():
            self.field.setFocus()
            self.field.clear()
            return True
        if watched is self.field and self._hits and (key is Qt.Key.Key_Down or key in _ENTER):
            self.results.setFocus()
            self.results.setCurrentRow(0)
            return True
        if key in _ENTER:  # it would press the dialog's default button and close it
            if watched is self.results and 0 <= self.results.currentRow() < len(self._hits):
                self.entered.emit(self._hits[self.results.currentRow()])
            return True
        return super().eventFilter(watched, event)

    def _search(self, text: str) -> None:
        self._hits = find(self._entries, text)
        self.results.blockSignals(True)
        self.results.clear()
        for entry in self._hits:
            item = QListWidgetItem(entry.label, self.results)
            where = tr("on the page “{page}”", page=entry.page_name)
            item.setToolTip(f"{entry.label} – {where}")
            item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, where)
        self.results.setCurrentRow(-1)
        self.results.blockSignals(False)
        self._show_results()

    def _show_results(self) -> None:
        query = self.field.text().strip()
        if not query:
            self.outcome.setText("")
        elif self._hits:
            self.outcome.setText(tr_count("{count} setting found", "{count} settings found", len(self._hits)))
        else:
            text = tr(
                "Nothing is called “{query}”. Try another word, such as font, memory or speed.", query=query
            )
            self.outcome.setText(text)
        self.outcome.setVisible(bool(query))
        self.results.setVisible(bool(self._hits))
        self.field.setAccessibleDescription(self.outcome.text())
        self.searching.emit(bool(query))

    def _choose(self, row: int) -> None:
        if 0 <= row < len(self._hits):
            self.chosen.emit(self._hits[row])
