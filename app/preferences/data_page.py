"""The page about the program's data: where it lies, the log, and going back to the defaults."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from app.dialogs import confirm
from app.i18n import tr
from app.paths import (
    data_dir,
    database_path,
    ensure_dir,
    log_path,
    models_dir,
    presets_path,
    profiles_dir,
    settings_path,
)
from app.preferences.backup_card import BackupCard
from app.preferences.page import SettingsPage
from app.preferences.support_card import SupportCard
from app.settings import OPTIONS, SettingsStore
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.elided import ElidedText
from app.widgets.folding import ButtonRow
from app.widgets.labels import hint
from app.wizard.offers import Knowledge
from engine.errors import EngineError


class DataPage(SettingsPage):
    """Everything the program keeps is in one folder. `restart_requested`: a backup is to be put in place."""

    restart_requested = Signal()

    def __init__(self, settings: SettingsStore, knowledge: Knowledge, parent: QWidget | None = None) -> None:
        super().__init__(tr("Data"), settings, parent)
        text = tr(
            "Everything the program keeps is in one folder on this computer; nothing is sent anywhere. "
            "To move it to another computer, back it up here and restore it there."
        )
        self.add_hint(text)
        card = QFrame(self)
        mark(card, card=True)
        self._rows = QGridLayout(card)
        self._rows.setContentsMargins(16, 12, 16, 12)
        self._rows.setHorizontalSpacing(16)
        self._rows.setVerticalSpacing(10)
        self._rows.setColumnStretch(1, 1)
        self.paths: dict[str, ElidedText] = {}
        self._add(card, tr("Data folder"), data_dir())
        self._add(card, tr("Conversations"), database_path())
        self._add(card, tr("Settings"), settings_path())
        self._add(card, tr("Presets"), presets_path())
        self._add(card, tr("Models"), models_dir())
        self._add(card, tr("Calibrations"), profiles_dir())
        self._add(card, tr("Log"), log_path())
        self.folder = push_button(tr("&Open folder"), lambda: self._open(data_dir(), data_dir()), card)
        self.log = push_button(tr("Open &log"), lambda: self._open(log_path(), log_path().parent), card)
        self._rows.addWidget(ButtonRow((self.folder, self.log), card), self._rows.rowCount(), 0, 1, 2)
        self.content.addWidget(card)
        self.backup = BackupCard(settings, self)
        self.backup.restart_requested.connect(self.restart_requested)
        self.support = SupportCard(settings, knowledge, self)
        for part in (self.backup, self.support):
            part.trouble.connect(self.trouble)
            self.content.addWidget(part)
        self.defaults = push_button(tr("Restore def&ault settings…"), self._ask_defaults, self)
        self.defaults.setToolTip(tr("Conversations, models and calibrations are kept."))
        self.content.addWidget(self.defaults, 0, Qt.AlignmentFlag.AlignLeft)
        self.content.addStretch(1)
        self.content.setSpacing(10)
        self._add_places(card)

    def _add_places(self, card: QFrame) -> None:
        """What a search finds here."""
        backup, support = self.backup, self.support
        words = tr("folder location path files storage disk where log open")
        self.add_place("folder", tr("Data folder"), words, card, self.folder)
        words = tr("save copy move another computer archive restore export zip")
        self.add_place("backup", tr("Backup and restore"), words, backup, backup.make)
        words = tr("help problem bug error support log versions hardware debug")
        self.add_place("report", tr("Diagnostic report"), words, support, support.copy)
        words = tr("reset factory original all settings")
        self.add_place("defaults", tr("Restore default settings"), words, self.defaults, self.defaults)

    def close_page(self) -> None:
        """Also give up the report that is being written."""
        super().close_page()
        self.support.forget()

    def _add(self, card: QFrame, name: str, path: Path) -> None:
        row = self._rows.rowCount()
        label = hint(name, card)
        label.setWordWrap(False)
        shown = self.paths[name] = ElidedText(str(path), card, middle=True)
        shown.setAccessibleName(f"{name}: {path}")
        self._rows.addWidget(label, row, 0)
        self._rows.addWidget(shown, row, 1)

    def _open(self, path: Path, folder: Path) -> None:
        """Open a file or folder with the desktop's program for it; where it is missing, its `folder`."""
        try:
            target = path if path.exists() else ensure_dir(folder)
        except EngineError as error:
            self.trouble.emit(error)
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(target)))

    @Slot()
    def _ask_defaults(self) -> None:
        confirm(
            self.window(),
            tr("Restore the default settings?"),
            tr(
                "Theme, sampling, system prompt and all other settings go back to what they were at first. "
                "Conversations, models and calibrations are kept."
            ),
            tr("Restore defaults"),
            self._restore,
        )

    def _restore(self) -> None:
        self.reset_requested.emit(tuple(option for option in OPTIONS if option.visible))
