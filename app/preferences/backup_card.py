"""The part of the data page that makes a backup, and restores one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFileDialog, QFrame, QWidget

from app.backup.contents import DATABASE, Manifest
from app.backup.staging import discard, stage
from app.backup.swapping import ask_for_swap
from app.backup.writing import back_up
from app.calibrations import moment_text
from app.desktop.long_work import BACKUP, RESTORE
from app.dialogs import MessageDialog, confirm
from app.i18n import tr, tr_count
from app.paths import data_dir, documents_dir
from app.settings import SettingsStore, registry
from app.theme import mark
from app.widgets.announce import announce
from app.widgets.background import Background
from app.widgets.buttons import push_button
from app.widgets.folding import beside_buttons
from app.widgets.labels import TextLabel, heading, hint
from app.widgets.task import Task
from engine.errors import EngineError
from engine.progress import CancelToken, ProgressCallback
from engine.units import format_bytes

_SUFFIX = ".zip"


class BackupCard(QFrame):
    """`trouble` carries an EngineError; `restart_requested`: a backup is to be put in place at a start."""

    trouble = Signal(object)
    restart_requested = Signal()

    def __init__(self, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._cleaning: Background[None] = Background(tr("Removing what was unpacked"), self)
        mark(self, card=True)
        self.make = push_button(tr("&Back up…"), self._ask_target, self)
        self.restore = push_button(tr("Re&store…"), self._ask_source, self)
        self.state = TextLabel(parent=self)
        self.state.hide()
        explanation = tr(
            "One file with your chats, settings, presets and calibrations, but not the models. Restoring "
            "moves what is here now into a folder of its own; nothing is deleted."
        )
        texts = (heading(tr("Backup"), self), hint(explanation, self), self.state)
        beside_buttons(self, texts, (self.make, self.restore))

    def back_up_to(self, target: Path) -> Task[Manifest]:
        """Make a backup; says so in the card."""

        def work(report: ProgressCallback, cancel: CancelToken) -> Manifest:
            return back_up(target, report, cancel)

        def done(manifest: Manifest) -> None:
            self._say(_made(manifest, target))

        return Task(self.window(), tr("Making the backup"), work, done, self.trouble.emit, kind=BACKUP)

    def restore_from(self, source: Path) -> Task[Manifest]:
        """Check and unpack a backup, then ask whether it is to take the place of what is here."""

        def work(report: ProgressCallback, cancel: CancelToken) -> Manifest:
            return stage(source, data_dir(), report, cancel)

        return Task(
            self.window(), tr("Checking the backup"), work, self._ask_restore, self.trouble.emit, kind=RESTORE
        )

    def _ask_restore(self, manifest: Manifest) -> MessageDialog:
        question = tr("Restore the backup of {date}?", date=moment_text(manifest.created))
        chats = tr_count("{count} chat", "{count} chats", manifest.chats)
        what = tr("It has {chats}.", chats=chats) if DATABASE in manifest.files else tr("It has no chats.")
        consequence = tr(
            "{what} What is here now is moved into a folder beside it, where you can find it again. The "
            "program closes and starts again.",
            what=what,
        )
        dialog = confirm(
            self.window(), question, consequence, tr("Restore and restart"), lambda: self._restore(manifest)
        )
        dialog.rejected.connect(self._forget)
        return dialog

    def _restore(self, manifest: Manifest) -> None:
        try:
            ask_for_swap(data_dir(), moment_text(manifest.created), datetime.now())
        except EngineError as error:
            self.trouble.emit(error)
            return
        self.restart_requested.emit()

    @Slot()
    def _forget(self) -> None:
        folder = data_dir()
        self._cleaning.run(lambda: discard(folder), lambda _: None, self.trouble.emit)

    def _say(self, text: str) -> None:
        self.state.setText(text)
        self.state.show()
        announce(self, text)

    @Slot()
    def _ask_target(self) -> None:
        name = f"fiddler-chat-{datetime.now():%Y-%m-%d}{_SUFFIX}"
        dialog = QFileDialog(self.window(), tr("Back up"), str(self._folder() / name))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(_SUFFIX)
        self._open(dialog).fileSelected.connect(lambda file: self.back_up_to(Path(file)))

    @Slot()
    def _ask_source(self) -> None:
        dialog = QFileDialog(self.window(), tr("Restore a backup"), str(self._folder()))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        self._open(dialog).fileSelected.connect(lambda file: self.restore_from(Path(file)))

    @staticmethod
    def _open(dialog: QFileDialog) -> QFileDialog:
        dialog.setNameFilters([f"{tr('Backups')} (*{_SUFFIX})", f"{tr('All files')} (*)"])
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def _folder(self) -> Path:
        return Path(self._settings.get(registry.EXPORT_FOLDER) or documents_dir())


def _made(manifest: Manifest, target: Path) -> str:
    chats = tr_count("{count} chat", "{count} chats", manifest.chats)
    size = format_bytes(sum(entry.bytes for entry in manifest.files.values()))
    return tr("Backed up into {name}: {chats}, {size} unpacked.", name=target.name, chats=chats, size=size)
