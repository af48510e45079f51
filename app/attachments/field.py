"""The files of a message that is being written: chips, adding and removing, what could not be attached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QFileDialog, QVBoxLayout, QWidget

from app.attachments.area import ChipArea
from app.attachments.chips import Chip, ChipRow
from app.attachments.decoding import normalised
from app.attachments.form import Attachment, with_files
from app.attachments.reader import FileReader, Place
from app.attachments.reading import ReadFiles
from app.chat.notice_bar import NoticeBar
from app.chat.notices import MessageNotice
from app.i18n import tr, tr_count
from app.paths import documents_dir
from app.widgets.announce import announce
from engine.errors import EngineError

_MOST_ERRORS = 4  # that are told at once


class AttachmentField(QWidget):
    """Hidden while there is nothing to show. Files are read in another thread, in their order.

    The message may give way to that of another place: what was chosen for it is then `read_elsewhere`.
    """

    changed = Signal()
    chats_found = Signal(object)  # list of Path: files with chats among those that were dropped
    read_elsewhere = Signal(object, object)  # the place for which they were chosen, tuple of Attachment
    left = Signal()  # the last chip is gone that had the keyboard

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._files: tuple[Attachment, ...] = ()
        self._errors: list[EngineError] = []  # of what is being read, and of what was read with it
        self._folder = ""  # the last that was chosen from
        self._place: Place = None
        self._reader = FileReader(self)
        self._reader.done.connect(self._on_read)
        self._reader.failed.connect(lambda error: self._tell([error]))
        self.row = ChipRow(removable=True)
        self.row.removed.connect(self._remove)
        self._area = ChipArea(self.row)
        self.notice = NoticeBar(dismissable=True)
        self.notice.dismissed.connect(self._show)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.notice)
        column.addWidget(self._area)
        self.hide()

    @property
    def files(self) -> tuple[Attachment, ...]:
        """The attached files."""
        return self._files

    @property
    def reading(self) -> bool:
        """Whether files for this message are still being read."""
        return self._reader.busy(self._place)

    def asks_to_wait(self) -> bool:
        """Whether files are still being read; then it says so, until they are."""
        if self.reading:
            self._say(tr("A file is still being read. Send the message when it has appeared."))
            announce(self, self.notice.text)
        return self.reading

    def set_files(self, files: Sequence[Attachment]) -> None:
        """Replace them all, as when another chat is opened."""
        self._errors = []
        self.notice.show_notice(None)
        self._set(tuple(files))

    def go_to(self, place: Place) -> None:
        """Another place's message is written here now."""
        self._place = place

    def move_to(self, place: Place) -> None:
        """The same message belongs to a chat that has just begun."""
        self._reader.move(self._place, place)
        self._place = place

    def add(self, files: Sequence[Attachment]) -> None:
        """Attach texts that are there already."""
        self._set(with_files(self._files, files))

    def add_text(self, text: str) -> None:
        """Attach a text that was pasted."""
        self.add([Attachment(tr("Pasted text.txt"), normalised(text))])

    def add_paths(self, paths: Sequence[Path], *, may_be_chats: bool = False) -> None:
        """Read files and attach them; with `may_be_chats`, files with chats are told of instead."""
        if not self.reading:
            self._errors = []
        self._reader.read(self._place, paths, may_be_chats=may_be_chats)

    def ask(self) -> QFileDialog:
        """Ask for files."""
        dialog = QFileDialog(self.window(), tr("Attach text files"), self._folder or str(documents_dir()))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(self._on_chosen)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def show_tokens(self, tokens: Sequence[int]) -> None:
        """Say how long each file is; ignored where the files are others by now."""
        if len(tokens) == len(self.row.chips):
            for chip, count in zip(self.row.chips, tokens, strict=True):
                chip.show_tokens(count)
            self._area.fit()

    def _on_chosen(self, names: list[str]) -> None:
        paths = [Path(name) for name in names]
        self._folder = str(paths[0].parent) if paths else self._folder
        self.add_paths(paths)

    def _on_read(self, place: Place, read: ReadFiles) -> None:
        self._tell(read.errors)  # also of another message's files: they would be missed there
        if read.attachments and place != self._place:
            self.read_elsewhere.emit(place, read.attachments)
        elif read.attachments:
            self.add(read.attachments)
            announce(self, tr("Attached: {names}", names=", ".join(file.name for file in read.attachments)))
        if read.chats:
            self.chats_found.emit(list(read.chats))

    def _tell(self, errors: Sequence[EngineError]) -> None:
        self._errors += errors
        told = [str(error) for error in self._errors[:_MOST_ERRORS]]
        if len(self._errors) > len(told):
            more = len(self._errors) - len(told)
            told.append(
                tr_count("{count} more file was not attached.", "{count} more files were not attached.", more)
            )
        if errors:
            announce(self, " ".join(told))
        self._say("\n".join(told))

    def _say(self, text: str) -> None:
        self.notice.show_notice(MessageNotice("warning", text) if text else None)
        self._show()

    def _remove(self, place: int) -> None:
        self._set((*self._files[:place], *self._files[place + 1 :]))

    def _set(self, files: tuple[Attachment, ...]) -> None:
        changed, self._files = files != self._files, files
        before = self._focused()
        self.row.show_files(files)
        self._area.fit()
        self._area.setVisible(bool(files))
        self._show()
        if before is not None and before[1] not in self.row.chips:
            self._focus_near(before[0])
        if changed:
            self.changed.emit()

    def _focused(self) -> tuple[int, Chip] | None:
        """The chip that has the keyboard, and its place."""
        widget = QApplication.focusWidget()
        chips = enumerate(self.row.chips)
        return next((found for found in chips if widget is not None and found[1].isAncestorOf(widget)), None)

    def _focus_near(self, place: int) -> None:
        chips = self.row.chips
        if chips:
            chips[min(place, len(chips) - 1)].open.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self.left.emit()

    def _show(self) -> None:
        self.setVisible(bool(self._files) or bool(self.notice.text))
