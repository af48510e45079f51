"""The main window: side bar, conversation, live panel, menus, status line."""

from __future__ import annotations

import logging

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QSplitter, QWidget

from app.appearance import apply_appearance
from app.chat.chats import ChatsController
from app.chat.commands import ChatCommands
from app.chat.deleted import DeletedFlow
from app.chat.list_model import ChatListModel
from app.chat.notices import Action, MessageNotice, notice_of
from app.chat.page import ChatPage
from app.chat.session import ChatSession
from app.chat.sidebar import SideBar
from app.chat.title_maker import TitleMaker
from app.desktop.last_run import BadEnding
from app.dialogs import show_error
from app.exporting import ExportFlow
from app.fault_dialog import ending_words, show_ending
from app.focus import move_focus
from app.i18n import tr
from app.importing.drop import DropWindow
from app.importing.flow import ImportFlow
from app.menus import Menus
from app.model_control import ModelControl
from app.panel.panel import LivePanel
from app.paths import presets_path
from app.presets.legacy import take_over_settings
from app.presets.store import PresetStore
from app.program_commands import ProgramCommands
from app.settings import SettingsStore, registry
from app.shortcuts.overlay import ShortcutsOverlay
from app.shortcuts.shortcuts import Shortcuts
from app.status_line import StatusLine
from app.storage import Conversation, MessageRow, Notice
from app.storage.opening import Opened
from app.storage.thread import StorageThread
from app.theme import application_icon
from app.widgets.announce import announce
from app.window_menus import MenuStates, add_menus
from app.window_place import WithinScreen, restore_place, save_place
from app.wizard.memory import is_needed
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.events import GenerationStats
from engine.status import EngineStatus

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
        self.restart_wanted = False
        self._ending: BadEnding | None = None  # of the run before
        self._chats_all_there = True  # as far as is known
        self._notices: list[Notice] = []  # that are shown
        self.setWindowIcon(application_icon())
        self.presets = PresetStore(presets_path(), settings)
        take_over_settings(settings, self.presets)
        self.session = ChatSession(storage, worker, self.presets, self)
        self.sidebar = SideBar(ChatListModel(self))
        self.page = ChatPage(self.session, storage)
        self.panel = LivePanel()
        self.chats = ChatsController(self.sidebar, self.session, storage, self)
        self.model = ModelControl(worker, settings, self.page.strip, self)
        self.titles = TitleMaker(self.session, storage, worker, settings, self)
        self.deleted = DeletedFlow(self, storage, self.chats, self.page.turns)
        self.export = ExportFlow(self, storage, settings)
        self.importing = ImportFlow(self, storage, settings)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        for part in (self.sidebar, self.page, self.panel):
            self.splitter.addWidget(part)
        self.splitter.setStretchFactor(1, 1)
        self.setCentralWidget(self.splitter)
        WithinScreen(self)
        self.status_line = StatusLine(self.statusBar())
        self.commands = ChatCommands(self.session, self.sidebar, self.chats, self.page)
        self.program = ProgramCommands(self, settings)
        self.menus = Menus(self)
        add_menus(self.menus, self)
        self._states = MenuStates(self.menus)
        self.shortcuts = Shortcuts(self.menus, settings, self, lent=("zoom_in", "zoom_out", "zoom_reset"))
        self.overlay = ShortcutsOverlay(self.shortcuts, self)
        self._connect_session()
        self._connect_model()
        self._connect_files()
        self._connect_page()
        self._connect_settings()
        restore_place(self, self.splitter, settings)
        self._show_title(None)
        self._show_status(None)

    def begin(self) -> None:
        """Open the chats, and load the model or open the wizard; called when the window is on the screen."""
        self._storage.start()
        self.chats.refresh()
        self.page.focus_composer()
        for problem in (*self._settings.problems, *self.presets.problems):
            self.show_error(problem)
        if is_needed(self._settings):
            self.setup_requested.emit()
        else:
            self.model.load_saved()

    @Slot(object)
    def show_error(self, error: EngineError) -> None:
        """Show an error that belongs to no message; once the window is closed, nobody could read it."""
        if self._storage.closed:
            log.warning("after the end: %s", error)
        else:
            show_error(self, error)

    def show_bad_ending(self, ending: BadEnding) -> None:
        """Say that the run before this one did not end properly, and offer what is known about it."""
        self._ending = ending
        self._show_ending_notice(ending)
        self.page.run_notice.triggered.connect(
            lambda: show_ending(self, ending, all_there=self._chats_all_there)
        )

    def _show_ending_notice(self, ending: BadEnding) -> None:
        words = ending_words(ending, all_there=self._chats_all_there)
        self.page.run_notice.show_notice(MessageNotice("warning", words, Action.DETAILS, tr("Details…")))

    @Slot()
    def restart(self) -> None:
        """Save everything, close, and have the program start again."""
        self.restart_wanted = True
        self.close()

    def focusNextPrevChild(self, next: bool) -> bool:
        """Tab goes on to the next part as it is laid out."""
        return move_focus(self.splitter, forward=next)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop what runs, save what is there, and close."""
        self.sidebar.list.end_edit()
        self.session.end_now()
        self.page.writing.keep()
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

    def _connect_session(self) -> None:
        session = self.session
        session.opened.connect(self._show_chat)
        session.begun.connect(lambda chat: self._show_chat(chat, []))
        session.renamed.connect(self._show_title)
        session.failed.connect(self.show_error)
        session.stats.connect(self._show_stats)
        session.messages_changed.connect(lambda rows: self._show_chat(session.conversation, rows))
        session.message_finished.connect(self.panel.end_answer)
        session.busy_changed.connect(self._on_busy)

    def _connect_model(self) -> None:
        self.model.status_changed.connect(self._show_status)
        self.model.choose_requested.connect(self.setup_requested)
        self._worker.counter_changed.connect(self.page.writing.use_counter)
        self._worker.closed.connect(lambda: self.page.writing.use_counter(None))
        self.page.model_notice.triggered.connect(self.calibration_requested)

    def _connect_files(self) -> None:
        """The database, and what is exported and imported."""
        self._storage.failed.connect(self.show_error)
        self._storage.opened.connect(self._on_opened)
        self.page.export_requested.connect(self.program.export_chats)
        self.sidebar.list.export_requested.connect(self.program.export_chosen)
        self.export.saved.connect(self._tell)
        self.importing.told.connect(self._tell)
        self.importing.imported.connect(self._on_imported)
        self.files_dropped.connect(self.page.writing.take_files)
        self.page.writing.chats_found.connect(self.importing.import_files)
        self.setAcceptDrops(True)

    def _connect_page(self) -> None:
        """The conversation and the list beside it."""
        self.page.sidebar_toggled.connect(self.program.toggle_sidebar)
        self.page.panel_toggled.connect(self.program.toggle_panel)
        self.sidebar.new_chat.connect(self.page.focus_composer)
        self.page.turns.undo_offered.connect(self.commands.offer_undo)
        self.page.notice.dismissed.connect(self._notices.clear)
        self.chats.place_found.connect(self.page.view.reveal)
        self.titles.renamed.connect(self.chats.refresh)
        stop = QShortcut(QKeySequence(Qt.Key.Key_Escape), self)
        stop.activated.connect(self.session.stop)

    def _connect_settings(self) -> None:
        unsubscribe = self._settings.subscribe(self._on_setting)
        self.destroyed.connect(unsubscribe)
        self._apply_settings()

    @Slot(object)
    def _on_opened(self, opened: Opened) -> None:
        for notice in opened.notices:
            self.show_notice(notice)
        self._chats_all_there = opened.saved and all(notice.good for notice in opened.notices)
        if self._ending is not None and not self._chats_all_there:
            self._show_ending_notice(self._ending)

    def show_notice(self, notice: Notice) -> None:
        """Tell above the conversation what happened to the user's data, until the user has dismissed it."""
        self._notices.append(notice)
        self._announce(notice_of(self._notices))

    @Slot(object)
    def _on_imported(self, chats: tuple[int, ...]) -> None:
        self.chats.refresh()
        if len(chats) == 1:
            self.session.open(chats[0])

    @Slot(str)
    def _tell(self, text: str) -> None:
        self._notices.clear()
        self._announce(MessageNotice("info", text))

    def _announce(self, notice: MessageNotice) -> None:
        self.page.notice.show_notice(notice)
        announce(self.page.notice, notice.text)

    @Slot(object, object)
    def _show_chat(self, chat: Conversation | None, rows: list[MessageRow]) -> None:
        self._show_title(chat)
        self.panel.show_chat(chat.id if chat else None, rows)
        self.status_line.show_chat(chat.id if chat else None)

    @Slot(object)
    def _show_title(self, conversation: Conversation | None) -> None:
        name = tr("Fiddler Chat")
        self.setWindowTitle(f"{conversation.title} – {name}" if conversation else name)
        self._show_states()

    @Slot(bool)
    def _on_busy(self, _busy: bool) -> None:
        self._show_states()

    def _show_states(self) -> None:
        session = self.session
        self._states.show(
            chat=session.conversation is not None, model=session.model is not None, busy=session.busy
        )

    @Slot(object)
    def _show_status(self, status: EngineStatus | None) -> None:
        self.page.show_model(status)
        self.panel.show_status(status)
        self.status_line.show_model(status)
        self._show_calibration(status.stale_calibration if status else "")
        self._show_states()

    def _show_calibration(self, stale: str) -> None:
        """Say above the conversation that the saved calibration does not fit any more, until it does."""
        notice = MessageNotice("warning", stale, Action.CALIBRATE, tr("Calibrate…")) if stale else None
        self.page.model_notice.show_notice(notice)

    @Slot(object)
    def _show_stats(self, stats: GenerationStats) -> None:
        self.panel.show_stats(stats)
        self.status_line.show_stats(stats)

    def _on_setting(self, key: str, _value: object) -> None:
        if key.startswith(("appearance.", "chat.", "panel.")):
            self._apply_settings()

    def _apply_settings(self) -> None:
        get = self._settings.get
        apply_appearance(self._settings)
        self.page.apply_width()
        self.page.composer.set_send_on_enter(get(registry.SEND_ON_ENTER))
        self.panel.setVisible(get(registry.PANEL_VISIBLE))
        self._states.show_panel(get(registry.PANEL_VISIBLE))
