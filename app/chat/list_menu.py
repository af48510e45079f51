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
    pinned, archived = all(chat.pinned for chat in chats), all(chat.archived for chat in chats)
    return [
        ("pin", tr("Unpin {count} chats") if pinned else tr("Pin {count} chats to the top")),
        (
            "archive",
            tr("Bring {count} chats back from the archive") if archived else tr("Archive {count} chats"),
        ),
        ("export", tr("Export {count} chats…")),
        ("delete", tr("Delete {count} chats")),
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
        action = menu.addAction(text.format(count=len(chats)))
        action.triggered.connect(_without_argument(actions[name]))
        theme().set_icon(action, name)
    return menu


def _without_argument(run: Callable[[], object]) -> Callable[[bool], None]:
    def slot(_checked: bool = False) -> None:
        run()

    return slot
