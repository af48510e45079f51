"""The dialog that asks what to export, in which format, with which parts, and where to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from app.export.chooser import ChatChooser
from app.export.job import ARCHIVE_SUFFIX, ExportJob, archive_name, file_name
from app.export.kinds import KINDS, kind_named
from app.export.names import free_path
from app.export.options import ExportOptions
from app.i18n import tr, tr_count
from app.paths import documents_dir
from app.settings import SettingsStore, registry
from app.storage.rows import Conversation
from app.text import shortened
from app.widgets.background import Background
from app.widgets.buttons import push_button
from app.widgets.elided import ElidedText
from app.widgets.labels import heading, hint

_WIDTH_IN_CHARACTERS = 66
_TITLE_CHARACTERS = 45


class ExportDialog(QDialog):
    """Asks; `export_requested` carries the `ExportJob`.

    `shown` is the chat that the window shows, if any; the chats `chosen` are ticked at first.
    """

    export_requested = Signal(object)

    def __init__(
        self,
        settings: SettingsStore,
        shown: Conversation | None,
        parent: QWidget | None = None,
        *,
        chosen: Sequence[int] = (),
    ) -> None:
        super().__init__(parent)
        self._settings, self._shown = settings, shown
        self._ticked = chosen or ([shown.id] if shown else [])
        self._chats: tuple[Conversation, ...] = ()
        self._chosen_path: Path | None = None  # by the user, in the file dialog
        self._path = Path()
        self.setWindowTitle(tr("Export chats"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._naming: Background[Path] = Background(tr("Looking for a free name"), self)
        self._make_scope()
        self._make_format()
        self._make_target()
        self._lay_out()
        self._on_change()

    def set_chats(self, chats: Sequence[Conversation]) -> None:
        """All chats that there are, in the order of the list."""
        self._chats = tuple(chats)
        self.chooser.set_chats(chats, self._ticked)
        self.all_chats.setText(tr("All chats ({count})", count=len(chats)))
        self._on_change()

    def job(self) -> ExportJob:
        """What the dialog says now."""
        chats = self._scope()
        options = ExportOptions(
            system_prompt=self.system_prompt.isChecked(),
            settings=self.parameters.isChecked(),
            statistics=self.statistics.isChecked(),
            branches=self.branches.isChecked(),
        )
        replace = self._path == self._chosen_path  # the file dialog has asked
        kind = KINDS[self.format.currentIndex()]
        return ExportJob(chats, self._path, kind, options, self._is_archive(), replace)

    def _make_scope(self) -> None:
        title = shortened(self._shown.title, _TITLE_CHARACTERS) if self._shown else ""
        text = tr("This chat: {title}", title=title) if title else tr("This chat")
        self.this_chat = QRadioButton(text.replace("&", "&&"), self)
        self.some_chats = QRadioButton(tr("Chats that I choose"), self)
        self.all_chats = QRadioButton(tr("All chats"), self)
        self.this_chat.setEnabled(self._shown is not None)
        only_shown = self._shown is not None and list(self._ticked) == [self._shown.id]
        first = self.this_chat if only_shown else self.some_chats if self._ticked else self.all_chats
        first.setChecked(True)
        self.scope = QButtonGroup(self)
        for button in (self.this_chat, self.some_chats, self.all_chats):
            self.scope.addButton(button)
        self.chooser = ChatChooser(self)
        self.chooser.setVisible(first is self.some_chats)
        self.scope.buttonToggled.connect(lambda *_: self._on_scope())
        self.chooser.changed.connect(self._on_change)

    def _make_format(self) -> None:
        get = self._settings.get
        self.format = QComboBox(self)
        self.format.setAccessibleName(tr("Format"))
        for kind in KINDS:
            self.format.addItem(kind.label)
        self.format.setCurrentIndex(KINDS.index(kind_named(get(registry.EXPORT_FORMAT))))
        self.format_help = hint(parent=self)
        self.system_prompt = self._box(tr("System prompt"), get(registry.EXPORT_SYSTEM_PROMPT))
        self.parameters = self._box(tr("Settings of each answer"), get(registry.EXPORT_SETTINGS))
        self.statistics = self._box(tr("Figures of each answer"), get(registry.EXPORT_STATISTICS))
        self.branches = self._box(tr("Other versions of messages"), get(registry.EXPORT_BRANCHES))
        self.format.currentIndexChanged.connect(self._on_change)

    def _box(self, text: str, ticked: bool) -> QCheckBox:
        box = QCheckBox(text, self)
        box.setChecked(ticked)
        return box

    def _make_target(self) -> None:
        self._folder = Path(self._settings.get(registry.EXPORT_FOLDER) or documents_dir())
        self.name = ElidedText(parent=self, middle=True)
        self.folder = ElidedText(parent=self, middle=True)
        self.change = push_button(tr("Change…"), self._ask_path, self)
        self.change.setAccessibleName(tr("Change the file's name or folder"))
        self.buttons = QDialogButtonBox(self)
        self.export = self.buttons.addButton(tr("Export"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.cancel = self.buttons.addButton(tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.export.setDefault(True)
        self.cancel.setAutoDefault(False)
        self.buttons.accepted.connect(self._export)
        self.buttons.rejected.connect(self.reject)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 18)
        column.setSpacing(8)
        column.addWidget(heading(tr("What"), self))
        for button in (self.this_chat, self.some_chats, self.chooser, self.all_chats):
            if button is self.chooser:
                column.addWidget(button, 1)
            else:
                column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addSpacing(8)
        column.addWidget(heading(tr("Format"), self))
        column.addWidget(self.format, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.format_help)
        column.addSpacing(8)
        column.addWidget(heading(tr("Include"), self))
        for box in (self.system_prompt, self.parameters, self.statistics, self.branches):
            column.addWidget(box, 0, Qt.AlignmentFlag.AlignLeft)
        column.addSpacing(8)
        column.addWidget(heading(tr("Save as"), self))
        place = QVBoxLayout()
        place.setSpacing(2)
        place.addWidget(self.name)
        place.addWidget(self.folder)
        row = QHBoxLayout()
        row.addLayout(place, 1)
        row.addWidget(self.change)
        column.addLayout(row)
        column.addSpacing(8)
        column.addWidget(self.buttons)
        self.format.setMinimumHeight(round(self.fontMetrics().height() * 1.7))
        self.format.setMinimumWidth(self.fontMetrics().averageCharWidth() * 26)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * _WIDTH_IN_CHARACTERS)

    def _scope(self) -> tuple[int, ...]:
        if self.this_chat.isChecked() and self._shown is not None:
            return (self._shown.id,)
        if self.some_chats.isChecked():
            return self.chooser.chosen()
        return tuple(chat.id for chat in self._chats)

    def _is_archive(self) -> bool:
        return self.all_chats.isChecked() or len(self._scope()) > 1

    def _on_scope(self) -> None:
        self.chooser.setVisible(self.some_chats.isChecked())
        self._on_change()
        self.adjustSize()

    @Slot()
    def _on_change(self) -> None:
        """Show what follows from the choices; another kind of file gets another name."""
        self.format_help.setText(KINDS[self.format.currentIndex()].help)
        self.export.setEnabled(False)  # until the name is known
        wanted = self._wanted_path()
        if self._chosen_path is not None and self._chosen_path.suffix == wanted.suffix:
            self._show_path(self._chosen_path)
            return
        self._naming.run(
            lambda: free_path(wanted.parent, wanted.name), self._show_path, lambda _: self._show_path(wanted)
        )

    def _wanted_path(self) -> Path:
        """Where to save unless the user said otherwise, whether or not that name is free."""
        if self._is_archive():
            return self._folder / archive_name(datetime.now())
        scope = self._scope()
        known = (self._shown, *self._chats) if self._shown else self._chats
        title = next((chat.title for chat in known if chat.id in scope), "")
        return self._folder / file_name(title, KINDS[self.format.currentIndex()])

    def _show_path(self, path: Path) -> None:
        self._path = path
        count = len(self._scope())
        self.name.setText(path.name if count else tr("Choose at least one chat."))
        many = tr_count("in {folder}, {count} chat", "in {folder}, {count} chats", count, folder=path.parent)
        self.folder.setText(many if self._is_archive() else tr("in {folder}", folder=path.parent))
        self.folder.setVisible(count > 0)
        self.export.setEnabled(count > 0)
        self.change.setEnabled(count > 0)

    def _ask_path(self) -> None:
        archive = self._is_archive()
        kind = KINDS[self.format.currentIndex()]
        dialog = QFileDialog(self, tr("Save as"), str(self._path.parent))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(f"{tr('Zip archive')} (*{ARCHIVE_SUFFIX})" if archive else kind.filter)
        dialog.setDefaultSuffix(ARCHIVE_SUFFIX if archive else kind.suffix)
        dialog.selectFile(self._path.name)
        dialog.fileSelected.connect(lambda file: self.choose_path(Path(file)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def choose_path(self, path: Path) -> None:
        """Save there; an existing file will be replaced."""
        self._chosen_path, self._folder = path, path.parent
        self._on_change()

    def _export(self) -> None:
        job = self.job()
        self.accept()
        self.export_requested.emit(job)
