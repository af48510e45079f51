"""The menus of the main window. A new command is one line in the list of its menu.

Each menu has a function that lists its commands; `None` is a line between groups. A command's name stays as
it is for ever: the user's own keys are saved under it. `MenuStates` says when a command can be given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import tr
from app.menus import Command, Menus

if TYPE_CHECKING:
    from app.window import MainWindow

Commands = list[Command | None]

NEED_CHAT = ("rename", "pin", "archive", "duplicate", "delete", "details")
NEED_MODEL_AT_REST = ("regenerate", "continue", "edit_last")


def add_menus(menus: Menus, window: MainWindow) -> None:
    """Build every menu, in the order in which they are shown."""
    menus.add(tr("&Chat"), chat_menu(window))
    menus.add(tr("&Edit"), edit_menu(window))
    menus.add(tr("&View"), view_menu(window))
    menus.add(tr("&Help"), help_menu(window))


def chat_menu(window: MainWindow) -> Commands:
    """What is done with chats and their answers, and the program's end."""
    chat, session = window.commands, window.session
    return [
        Command("new", tr("&New chat"), "Ctrl+N", chat.new_chat),
        Command("rename", tr("&Rename chat"), "", chat.rename),
        Command("pin", tr("&Pin or unpin chat"), "Ctrl+Shift+P", chat.pin),
        Command("archive", tr("&Archive chat or bring it back"), "Ctrl+Shift+A", chat.archive),
        Command("duplicate", tr("D&uplicate chat"), "Ctrl+Shift+D", chat.duplicate),
        Command("delete", tr("&Delete chat"), "", chat.delete),
        Command("deleted", tr("Recentl&y deleted…"), "", window.deleted.ask),
        None,
        Command("regenerate", tr("Re&generate the answer"), "Ctrl+R", session.regenerate),
        Command("continue", tr("&Continue the answer"), "", chat.go_on),
        Command("edit_last", tr("Edit the &last question"), "Ctrl+Shift+E", chat.edit_last),
        Command("stop", tr("&Stop the answer"), "", session.stop),
        None,
        Command("parameters", tr("Parameters &for this chat…"), "Ctrl+P", chat.parameters),
        Command("details", tr("De&tails of the last answer…"), "Ctrl+I", chat.details),
        None,
        Command("export", tr("&Export chats…"), "Ctrl+E", window.program.export_chats),
        Command("import", tr("&Import chats…"), "", window.importing.ask),
        None,
        Command("model", tr("Change &model…"), "Ctrl+M", window.setup_requested.emit),
        Command("quit", tr("&Quit"), "Ctrl+Q", window.close),
    ]


def edit_menu(window: MainWindow) -> Commands:
    """Where to write and to look for something, and the settings."""
    return [
        Command("find", tr("&Search chats"), "Ctrl+F", window.commands.find),
        Command("compose", tr("Go to the &message field"), "Ctrl+L", window.page.focus_composer),
        Command("attach", tr("&Attach text files…"), "Ctrl+O", window.page.writing.attach),
        None,
        Command("settings", tr("Se&ttings…"), "Ctrl+,", window.settings_requested.emit),
    ]


def view_menu(window: MainWindow) -> Commands:
    """What the window shows, and in which colours."""
    program = window.program
    return [
        Command("sidebar", tr("L&ist of chats"), "F9", program.toggle_sidebar),
        Command("archived", tr("Archi&ved chats"), "", window.commands.show_archive),
        Command("panel", tr("Live &panel"), "F10", program.toggle_panel, checkable=True),
        None,
        Command("theme_system", tr("Colours as the &desktop"), "", lambda: program.use_theme("system")),
        Command("theme_light", tr("&Light colours"), "", lambda: program.use_theme("light")),
        Command("theme_dark", tr("D&ark colours"), "", lambda: program.use_theme("dark")),
        Command("theme_contrast", tr("&High contrast"), "", program.use_high_contrast),
        None,
        Command("zoom_in", tr("&Zoom in"), "Ctrl++", lambda: program.zoom(1)),
        Command("zoom_out", tr("Zoom &out"), "Ctrl+-", lambda: program.zoom(-1)),
        Command("zoom_reset", tr("&Normal size"), "Ctrl+0", lambda: program.zoom(0)),
    ]


def help_menu(window: MainWindow) -> Commands:
    """What the program says about itself."""
    program = window.program
    return [
        Command("shortcuts", tr("&Keyboard shortcuts"), "F1", program.show_shortcuts),
        Command("log_window", tr("&Log"), "Ctrl+Shift+L", program.show_log),
        Command("log", tr("Open the log &folder"), "", program.open_log_folder),
        Command("about", tr("&About Fiddler Chat"), "", program.show_about),
    ]


class MenuStates:
    """Which commands can be given at the moment."""

    def __init__(self, menus: Menus) -> None:
        self._actions = menus.actions

    def show(self, *, chat: bool, model: bool, busy: bool) -> None:
        """`chat`: one is shown that is saved; `model`: one is loaded; `busy`: an answer is being written."""
        for name in NEED_CHAT:
            self._actions[name].setEnabled(chat)
        self._actions["stop"].setEnabled(busy)
        for name in NEED_MODEL_AT_REST:
            self._actions[name].setEnabled(chat and model and not busy)

    def show_panel(self, visible: bool) -> None:
        """Whether the live panel is on the screen."""
        self._actions["panel"].setChecked(visible)
