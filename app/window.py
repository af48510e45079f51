"""The main window: side bar, conversation, live panel, menus, status line."""

from __future__ import annotations

import logging
from typing import Any

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDesktopServices, QKeySequence, QShortcut
from PySide6.QtWidgets import QLabel, QSplitter, QWidget

from app.chat.chats import ChatsController
from app.chat.commands import ChatCommands
from app.chat.list_model import ChatListModel
from app.chat.notices import Action, MessageNotice, describe
from app.chat.page import ChatPage
from app.chat.session import ChatSession
from app.chat.sidebar import SideBar
from app.dialogs import show_error
from app.exporting import ExportFlow
from app.focus import move_focus
from app.i18n import tr
from app.importing.drop import DropWindow
from app.importing.flow import ImportFlow
from app.menus import AboutDialog, Command, Menus, ShortcutsDialog
from app.model_control import ModelControl, where_it_runs
from app.panel.panel import LivePanel
from app.paths import ensure_dir, log_path
from app.settings import Option, SettingsStore, registry
from app.settings.option import Value
from app.storage import Conversation, MessageRow, Notice
from app.storage.opening import Opened
from app.storage.thread import StorageThread
from app.theme import application_icon, mark, theme
from app.widgets.elided import ElidedText
from app.window_place import restore_place, save_place
from app.wizard.memory import is_needed
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.events import GenerationStats
from engine.status import EngineStatus
from engine.version import version

log = logging.getLogger(__name__)


class MainWindow(DropWindow):
    """Everything the user sees outside of dialogs. Takes its parts; starts nothing before `begin`."""

    setup_requested = Signal()  # open the wizard, for a first start or another model
    settings_requested = Signal()
    calibration_requested = Signal()
    closed = Signal()  # everything is saved

    def __init__(
        self,
        storage: StorageThread,
        worker: EngineWorker,
        settings: SettingsStore,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._storage, self._worker, self._settings = storage, worker, settings
        self.setWindowIcon(application_icon())
        self.session = ChatSession(storage, worker, settings, self)
        self.sidebar = SideBar(ChatListModel(self))
        self.page = ChatPage(self.session, storage)
        self.panel = LivePanel()
        self.chats = ChatsController(self.sidebar, self.session, storage, self)
        self.model = ModelControl(worker, settings, self.page.strip, self)
        self.export = ExportFlow(self, storage, settings)
        self.importing = ImportFlow(self, storage, settings)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        for part in (self.sidebar, self.page, self.panel):
            self.splitter.addWidget(part)
        self.splitter.setStretchFactor(1, 1)
        self.sidebar.setMinimumWidth(180)
        self.page.setMinimumWidth(360)
        self.setCentralWidget(self.splitter)
        self._status_text = ElidedText()
        self._speed_text = QLabel()
        for label in (self._status_text, self._speed_text):
            mark(label, muted=True)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().setContentsMargins(12, 2, 12, 2)
        self.statusBar().addWidget(self._status_text, 1)
        self.statusBar().addPermanentWidget(self._speed_text)
        self.commands = ChatCommands(self.session, self.sidebar, self.chats, self.page)
        self.menus = Menus(self)
        self._add_menus()
        self._connect()
        restore_place(self, self.splitter, settings)
        self._show_title(None)
        self._show_status(None)

    def begin(self) -> None:
        """Open the chats, and load the model or open the wizard; called when the window is on the screen."""
        self._storage.start()
        self.chats.refresh()
        self.page.focus_composer()
        for problem in self._settings.problems:
            self.show_error(problem)
        if is_needed(self._settings):
            self.setup_requested.emit()
        else:
            self.model.load_saved()

    @Slot(object)
    def show_error(self, error: EngineError) -> None:
        """Show an error that belongs to no message."""
        show_error(self, error)

    def focusNextPrevChild(self, next: bool) -> bool:
        """Tab goes on to the next part as it is laid out."""
        return move_focus(self.splitter, forward=next)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop what runs, save what is there, and close."""
        self.session.end_now()
        self.export.stop()
        self.importing.stop()
        try:
            save_place(self, self.splitter, self._settings)
        except EngineError as error:
            log.warning("the window's place was not saved: %s", error)
        self._worker.shutdown()
        self._storage.close()
        super().closeEvent(event)
        self.closed.emit()

    def toggle_panel(self) -> None:
        """Show or hide the live panel, now and at the next start."""
        self._set(registry.PANEL_VISIBLE, not self._settings.get(registry.PANEL_VISIBLE))

    def toggle_sidebar(self) -> None:
        """Show or hide the list of chats."""
        self.sidebar.setVisible(self.sidebar.isHidden())

    def _connect(self) -> None:
        session, storage = self.session, self._storage
        session.opened.connect(lambda chat, _rows: self._show_title(chat))
        session.begun.connect(self._show_title)
        session.renamed.connect(self._show_title)
        session.failed.connect(self.show_error)
        session.stats.connect(self._show_stats)
        session.opened.connect(lambda chat, rows: self.panel.show_chat(chat.id if chat else None, rows))
        session.begun.connect(lambda chat: self.panel.show_chat(chat.id, []))
        session.messages_changed.connect(self._show_answers)
        session.message_finished.connect(self.panel.end_answer)
        session.busy_changed.connect(self._on_busy)
        storage.failed.connect(self.show_error)
        storage.opened.connect(self._on_opened)
        self.model.status_changed.connect(self._show_status)
        self.model.choose_requested.connect(self.setup_requested)
        self.page.export_requested.connect(self._export)
        self.export.saved.connect(self._tell)
        self.importing.told.connect(self._tell)
        self.importing.imported.connect(self._on_imported)
        self.files_dropped.connect(self.importing.import_files)
        self.setAcceptDrops(True)
        self.page.model_notice.triggered.connect(self.calibration_requested)
        self.page.sidebar_toggled.connect(self.toggle_sidebar)
        self.page.panel_toggled.connect(self.toggle_panel)
        self.sidebar.new_chat.connect(self.page.focus_composer)
        self.page.turns.deleted.connect(self.commands.offer_undo)
        self.chats.place_found.connect(self.page.view.reveal)
        stop = QShortcut(QKeySequence(Qt.Key.Key_Escape), self)
        stop.activated.connect(session.stop)
        unsubscribe = self._settings.subscribe(self._on_setting)
        self.destroyed.connect(unsubscribe)
        self._apply_settings()

    def _add_menus(self) -> None:
        session = self.session
        self.menus.add(
            tr("&Chat"),
            [
                Command("new", tr("&New chat"), "Ctrl+N", self.commands.new_chat),
                Command("rename", tr("&Rename chat"), "", self.commands.rename),
                Command("pin", tr("&Pin or unpin chat"), "Ctrl+Shift+P", self.commands.pin),
                Command(
                    "archive", tr("&Archive chat or bring it back"), "Ctrl+Shift+A", self.commands.archive
                ),
                Command("duplicate", tr("D&uplicate chat"), "Ctrl+Shift+D", self.commands.duplicate),
                Command("delete", tr("&Delete chat"), "", self.commands.delete),
                None,
                Command("regenerate", tr("Re&generate the answer"), "Ctrl+R", session.regenerate),
                Command("continue", tr("&Continue the answer"), "", self.commands.go_on),
                Command("edit_last", tr("Edit the &last question"), "Ctrl+Shift+E", self.commands.edit_last),
                Command("stop", tr("&Stop the answer"), "", session.stop),
                None,
                Command("export", tr("&Export chats…"), "Ctrl+E", self._export),
                Command("import", tr("&Import chats…"), "", self.importing.ask),
                None,
                Command("model", tr("Change &model…"), "Ctrl+M", self.setup_requested.emit),
                Command("quit", tr("&Quit"), "Ctrl+Q", self.close),
            ],
        )
        self.menus.add(
            tr("&Edit"),
            [
                Command("find", tr("&Search chats"), "Ctrl+F", self.commands.find),
                Command("compose", tr("Go to the &message field"), "Ctrl+L", self.page.focus_composer),
                None,
                Command("settings", tr("Se&ttings…"), "Ctrl+,", self.settings_requested.emit),
            ],
        )
        self.menus.add(
            tr("&View"),
            [
                Command("sidebar", tr("L&ist of chats"), "F9", self.toggle_sidebar),
                Command("archived", tr("Archi&ved chats"), "", self.commands.show_archive),
                Command("panel", tr("Live &panel"), "F10", self.toggle_panel, checkable=True),
                None,
                Command("theme_system", tr("Colours as the &desktop"), "", lambda: self._theme("system")),
                Command("theme_light", tr("&Light colours"), "", lambda: self._theme("light")),
                Command("theme_dark", tr("D&ark colours"), "", lambda: self._theme("dark")),
            ],
        )
        self.menus.add(
            tr("&Help"),
            [
                Command("shortcuts", tr("&Keyboard shortcuts"), "F1", self._shortcuts),
                Command("log", tr("Open the &log folder"), "", self._open_log_folder),
                Command("about", tr("&About Fiddler Chat"), "", self._about),
            ],
        )

    def _export(self) -> None:
        self.export.ask(self.session.conversation)

    def _shortcuts(self) -> None:
        ShortcutsDialog(list(self.menus.actions.values()), self).open()

    def _about(self) -> None:
        AboutDialog(version(), self).open()

    def _open_log_folder(self) -> None:
        try:
            folder = ensure_dir(log_path().parent)
        except EngineError as error:
            self.show_error(error)
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _theme(self, name: str) -> None:
        self._set(registry.THEME, name)

    @Slot(object)
    def _on_opened(self, opened: Opened) -> None:
        for notice in opened.notices:
            self._show_notice(notice)

    def _show_notice(self, notice: Notice) -> None:
        text = " ".join(part for part in (notice.what, notice.why, notice.action) if part)
        self.page.notice.show_notice(MessageNotice("warning", text))

    @Slot(object)
    def _on_imported(self, chats: tuple[int, ...]) -> None:
        self.chats.refresh()
        if len(chats) == 1:
            self.session.open(chats[0])

    @Slot(str)
    def _tell(self, text: str) -> None:
        self.page.notice.show_notice(MessageNotice("info", text))

    @Slot(object)
    def _show_title(self, conversation: Conversation | None) -> None:
        name = tr("Fiddler Chat")
        self.setWindowTitle(f"{conversation.title} – {name}" if conversation else name)
        for action in ("rename", "pin", "archive", "duplicate", "delete"):
            self.menus.actions[action].setEnabled(conversation is not None)
        self._on_busy(self.session.busy)

    @Slot(bool)
    def _on_busy(self, busy: bool) -> None:
        self.menus.actions["stop"].setEnabled(busy)
        can = not busy and self.session.conversation is not None and self.session.model is not None
        for action in ("regenerate", "continue", "edit_last"):
            self.menus.actions[action].setEnabled(can)

    @Slot(object)
    def _show_status(self, status: EngineStatus | None) -> None:
        self.page.show_model(status)
        self.panel.show_status(status)
        self._status_text.setText(where_it_runs(status) if status else tr("No model is loaded"))
        self._show_calibration(status.stale_calibration if status else "")
        if status is not None and status.notes:
            self._status_text.setToolTip("\n".join(status.notes))
        self._on_busy(self.session.busy)

    def _show_calibration(self, stale: str) -> None:
        """Say above the conversation that the saved calibration does not fit any more, until it does."""
        notice = MessageNotice("warning", stale, Action.CALIBRATE, tr("Calibrate…")) if stale else None
        self.page.model_notice.show_notice(notice)

    @Slot(object)
    def _show_stats(self, stats: GenerationStats) -> None:
        self.panel.show_stats(stats)
        self._speed_text.setText(describe(stats))

    def _show_answers(self, rows: list[MessageRow]) -> None:
        chat = self.session.conversation
        self.panel.show_chat(chat.id if chat else None, rows)

    def _on_setting(self, key: str, _value: object) -> None:
        if key.startswith(("appearance.", "chat.", "panel.")):
            self._apply_settings()

    def _apply_settings(self) -> None:
        get = self._settings.get
        theme().apply(get(registry.THEME), get(registry.FONT_SIZE))
        self.page.apply_width()
        self.page.composer.set_send_on_enter(get(registry.SEND_ON_ENTER))
        self.panel.setVisible(get(registry.PANEL_VISIBLE))
        self.menus.actions["panel"].setChecked(get(registry.PANEL_VISIBLE))

    def _set(self, option: Option[Any], value: Value) -> None:
        try:
            self._settings.update({option.key: value})
        except EngineError as error:
            self.show_error(error)
