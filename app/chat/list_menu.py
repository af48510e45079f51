"""The menu of one or several chats of the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QMenu, QWidget

from app.i18n import tr, tr_count
from app.storage import Conversation
from app.theme import theme

Actions = dict[str, Callable[[], object]]
Entry = tuple[str, str]  # the name of an icon and of an action, the text


def one_chat(chat: Conversation) -> list[Entry]:
    """What can be done with a chat."""
    return [
        ("rename", tr("Rename")),
        ("pin", tr("Unpin") if chat.pinned else tr("Pin to the top")),
        ("archive", tr("Bring back from the archive") if chat.archived else tr("Archive")),
        ("duplicate", tr("Duplicate")),
        ("export", tr("Export…")),
        ("delete", tr("Delete")),
    ]


def several_chats(chats: Sequence[Conversation]) -> list[Entry]:
    """What can be done with several at once; where some are pinned or archived already, the others follow."""
    count = len(chats)
    if all(chat.pinned for chat in chats):
        pin = tr_count("Unpin {count} chat", "Unpin {count} chats", count)
    else:
        pin = tr_count("Pin {count} chat to the top", "Pin {count} chats to the top", count)
    if all(chat.archived for chat in chats):
        archive = tr_count(
            "Bring {count} chat back from the archive", "Bring {count} chats back from the archive", count
        )
    else:
        archive = tr_count("Archive {count} chat", "Archive {count} chats", count)
    return [
        ("pin", pin),
        ("archive", archive),
        ("export", tr_count("Export {count} chat…", "Export {count} chats…", count)),
        ("delete", tr_count("Delete {count} chat", "Delete {count} chats", count)),
    ]


def make_menu(chats: Sequence[Conversation], actions: Actions, parent: QWidget) -> QMenu:
    """The menu for the chosen chats; `actions` by the names of the entries."""
    menu = QMenu(parent)
    if len(chats) == 1:
        menu.setAccessibleName(tr("Chat “{title}”", title=chats[0].title))
        entries = one_chat(chats[0])
    else:
        menu.setAccessibleName(tr_count("{count} chat", "{count} chats", len(chats)))
        entries = several_chats(chats)
    for name, text in entries:
        action = menu.addAction(text)
        action.triggered.connect(_without_argument(actions[name]))
        theme().set_icon(action, name)
    return menu


def _without_argument(run: Callable[[], object]) -> Callable[[], object]:
    return lambda: run()
