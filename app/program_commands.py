"""What the menus' entries do that concern the window or the program, not one chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from app.appearance import next_zoom
from app.dialog_sizes import DialogSizes
from app.logs.lines import last_lines
from app.menus import AboutDialog
from app.paths import ensure_dir, log_path
from app.settings import Option, SettingsStore, registry
from app.settings.option import Value
from app.theme import theme
from engine.errors import EngineError
from engine.version import version

if TYPE_CHECKING:
    from app.logs.window import LogWindow
    from app.window import MainWindow


class ProgramCommands:
    """Each shows what goes wrong over the window, and raises nothing."""

    def __init__(self, window: MainWindow, settings: SettingsStore) -> None:
        self._window, self._settings = window, settings
        self._log_window: LogWindow | None = None
        self._dialog_sizes = DialogSizes(window)

    def export_chats(self) -> None:
        """Ask what of the chat that is shown, or of all, is to be exported."""
        self._window.export.ask(self._window.session.conversation)

    def export_chosen(self, chats: tuple[int, ...]) -> None:
        """Ask how these chats of the list are to be exported."""
        self._window.export.ask(self._window.session.conversation, chats)

    def toggle_panel(self) -> None:
        """Show or hide the live panel, now and at the next start."""
        self._set(registry.PANEL_VISIBLE, not self._settings.get(registry.PANEL_VISIBLE))

    def toggle_sidebar(self) -> None:
        """Show or hide the list of chats."""
        self._window.sidebar.setVisible(self._window.sidebar.isHidden())

    def use_theme(self, name: str) -> None:
        """Show the program in these colours, now and at the next start."""
        self._set(registry.THEME, name)

    def use_high_contrast(self) -> None:
        """Show the program in the high contrast that fits what is shown: light stays light, dark dark."""
        self.use_theme("contrast_dark" if theme().dark else "contrast_light")

    def zoom(self, direction: int) -> None:
        """Show everything larger (1) or smaller (-1), or in its own size again (0)."""
        zoom = registry.ZOOM
        self._set(zoom, next_zoom(self._settings.get(zoom), direction) if direction else zoom.default)

    def show_shortcuts(self) -> None:
        """Lay the list of keys over the window, or take it away."""
        self._window.overlay.toggle()

    def show_about(self) -> None:
        """Say what this program is."""
        AboutDialog(version(), self._window).open()

    def show_log(self) -> None:
        """Show the last lines of the log, beside the window."""
        if self._log_window is None:
            from app.logs.window import LogWindow  # not at the start: few ever look

            self._log_window = LogWindow(last_lines, self.open_log_folder, self._window)
        self._log_window.show()
        self._log_window.raise_()
        self._log_window.activateWindow()

    def open_log_folder(self) -> None:
        """Show the log's folder in the desktop's file manager."""
        try:
            folder = ensure_dir(log_path().parent)
        except EngineError as error:
            self._window.show_error(error)
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _set(self, option: Option[Any], value: Value) -> None:
        try:
            self._settings.update({option.key: value})
        except EngineError as error:
            self._window.show_error(error)
