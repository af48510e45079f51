"""What a choice needs of memory, graphics memory and disk: a bar, a sentence and the items for each."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from app.i18n import tr
from app.theme import mark
from app.widgets.amount_bar import AmountBar
from app.widgets.labels import TextLabel, hint
from engine.requirements import Need, Resource
from engine.units import format_bytes

NO_BREAK_SPACE = "\u00a0"
_SHORT = 40  # characters: longer ones would be wider than a small window


def resource_name(resource: Resource) -> str:
    """The resource as the pages call it."""
    names = {
        Resource.RAM: tr("Memory"),
        Resource.VRAM: tr("Graphics memory"),
        Resource.DISK: tr("Disk space"),
    }
    return names[resource]


def need_sentence(need: Need, gap: str = " ") -> str:
    """Needed, available, and, after `gap`, missing if anything is."""
    text = tr(
        "{needed} needed, {available} available",
        needed=format_bytes(need.total),
        available=format_bytes(need.available),
    )
    if need.fits:
        return text
    return tr("{text}:{gap}{missing} missing", text=text, gap=gap, missing=format_bytes(need.missing))


def need_items(need: Need) -> str:
    """The items in one line, in the order of the bar's segments. A short item is not broken between lines."""
    texts = (f"{_capital(item.label)} {format_bytes(item.nbytes)}" for item in need.items)
    return f"{NO_BREAK_SPACE}· ".join(
        text.replace(" ", NO_BREAK_SPACE) if len(text) <= _SHORT else text for text in texts
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class NeedsView(QWidget):
    """One block for each need."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._needs: tuple[Need, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)

    def set_needs(self, needs: tuple[Need, ...]) -> None:
        """Show `needs`."""
        if needs == self._needs:
            return
        self._needs = needs
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for index, need in enumerate(needs):
            self._add(index * 3, need)

    def _add(self, row: int, need: Need) -> None:
        sentence, items = need_sentence(need), need_items(need)
        name = TextLabel(resource_name(need.resource), self)
        verdict = TextLabel(need_sentence(need, "\n"), self)  # on one line, the bar would have no room
        for label in (name, verdict):
            label.setWordWrap(False)
        if not need.fits:
            mark(verdict, tone="error")
        bar = AmountBar(self)
        description = f"{resource_name(need.resource)}: {sentence}. {items}"
        bar.set_amounts([item.nbytes for item in need.items], need.available, description)
        if row:
            self._grid.setRowMinimumHeight(row - 1, 4)
        self._grid.addWidget(name, row, 0)
        self._grid.addWidget(bar, row, 1, Qt.AlignmentFlag.AlignVCenter)
        self._grid.addWidget(verdict, row, 2)
        self._grid.addWidget(hint(items, self), row + 1, 1, 1, 2)
