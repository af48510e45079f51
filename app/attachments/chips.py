"""Attached files as chips: a name that opens the text, and where it can be, a button that removes it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from app.answers import token_words
from app.attachments.form import Attachment
from app.attachments.viewer import AttachmentDialog
from app.i18n import tr, tr_count
from app.theme import mark, theme
from app.widgets.flow import FlowLayout
from app.widgets.literal import as_label, as_tip

_NAME_CHARACTERS = 32
_NARROWEST = 56  # pixels: the icon and a few letters


class Chip(QFrame):
    """One file."""

    removed = Signal()

    def __init__(self, file: Attachment, *, removable: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.file = file
        mark(self, chip=True)
        self.open = QToolButton()
        self.open.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.open.setIconSize(QSize(16, 16))
        self.open.setMinimumWidth(_NARROWEST)  # its text is cut where there is less room than it needs
        self.open.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme().set_icon(self.open, "file", "muted")
        self.open.clicked.connect(self._show)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 2, 4, 2)
        row.setSpacing(0)
        row.addWidget(self.open)
        self.remove = QToolButton()
        self.remove.setIconSize(QSize(14, 14))
        mark(self.remove, small=True)
        self.remove.setToolTip(tr("Remove this file"))
        self.remove.setAccessibleName(tr("Remove {name}", name=file.name))
        theme().set_icon(self.remove, "close", "muted")
        self.remove.clicked.connect(self.removed)
        row.addWidget(self.remove)
        self.remove.setVisible(removable)
        if removable:
            self.open.installEventFilter(self)
        self.show_tokens(None)

    def show_tokens(self, tokens: int | None) -> None:
        """Say how long the file is: in tokens where that is known."""
        if tokens is None:
            size = tr_count("{count} line", "{count} lines", self.file.lines)
        else:
            size = token_words(tokens)
        name = as_label(_short(self.file.name))
        self.open.setText(f"{name} · {size}")
        said = tr("Attached file {name}, {size}", name=self.file.name, size=size)
        self.open.setAccessibleName(said)
        self.open.setToolTip(as_tip(tr("{name}: show the text", name=self.file.name)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Delete removes the file, too."""
        if not isinstance(event, QKeyEvent) or event.type() is not QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        removes = event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)
        if removes:
            self.removed.emit()
        return removes

    def _show(self) -> None:
        AttachmentDialog(self.file, self.window()).open()


class ChipRow(QWidget):
    """Chips side by side; hidden while there are none."""

    removed = Signal(int)  # the place of the file that is to go

    def __init__(self, *, removable: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._removable = removable
        self.chips: list[Chip] = []
        self._flow = FlowLayout(self)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName(tr("Attached files"))
        self.hide()

    @property
    def spacing(self) -> int:
        """Pixels between chips."""
        return self._flow.spacing()

    @property
    def natural_width(self) -> int:
        """Pixels that all chips take side by side; 0 without any."""
        return self._flow.line_width()

    def show_files(self, files: Sequence[Attachment]) -> None:
        """Show these; chips of files that stay are kept, with the keyboard at them."""
        before = {chip.file: chip for chip in self.chips}
        while self._flow.count():
            self._flow.takeAt(0)
        self.chips = [before.pop(file) if file in before else self._made(file) for file in files]
        for chip in self.chips:
            self._flow.addWidget(chip)
            chip.show()
        for chip in before.values():
            chip.hide()
            chip.deleteLater()
        self.setVisible(bool(files))
        self.updateGeometry()

    def _made(self, file: Attachment) -> Chip:
        chip = Chip(file, removable=self._removable, parent=self)
        chip.removed.connect(partial(self._remove, chip))
        return chip

    def _remove(self, chip: Chip) -> None:
        self.removed.emit(self.chips.index(chip))


def _short(name: str) -> str:
    """A long name without its middle: its end says what kind of file it is."""
    if len(name) <= _NAME_CHARACTERS:
        return name
    end = _NAME_CHARACTERS // 3
    return f"{name[: _NAME_CHARACTERS - end - 1].rstrip()}…{name[-end:].lstrip()}"
