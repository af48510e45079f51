"""What is done with several chats of the list at once."""

from __future__ import annotations

from gettext import NullTranslations

import pytest
from PySide6.QtCore import QItemSelectionModel, QPoint, Qt
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from app import i18n
from app.export.dialog import ExportDialog
from app.storage import ChatStore
from app.storage.thread import StorageThread
from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def chats(qtbot: QtBot, window: MainWindow, storage: StorageThread) -> list[int]:
    """The ids of a, b, c and d; the list shows the last first."""

    def save(store: ChatStore) -> list[int]:
        ids = []
        for title in "abcd":
            ids.append(store.create_conversation(title).id)
            store.add_message(ids[-1], "user", f"text of {title}")
        return ids

    saved: list[int] = []
    storage.run(save).then(saved.extend)
    window.chats.refresh()
    qtbot.waitUntil(lambda: listed(window) == "dcba", timeout=5000)
    return saved


def listed(window: MainWindow) -> str:
    model = window.sidebar.model
    return "".join(str(model.index(row).data()) for row in range(model.rowCount()))


def choose(window: MainWindow, *rows: int) -> QMenu:
    """Select rows of the list; the menu of the last."""
    view, model = window.sidebar.list, window.sidebar.model
    view.selectionModel().clear()
    for row in rows:
        view.selectionModel().setCurrentIndex(model.index(row), QItemSelectionModel.SelectionFlag.Select)
    return view.menu_for(model.index(rows[-1]))


def trigger(menu: QMenu, text: str) -> None:
    (action,) = [action for action in menu.actions() if action.text() == text]
    action.trigger()


def chosen(window: MainWindow) -> str:
    return "".join(chat.title for chat in window.sidebar.list.chosen())


def test_several_are_deleted_and_brought_back(qtbot: QtBot, window: MainWindow, chats: list[int]) -> None:
    with qtbot.waitSignal(window.session.opened):
        window.session.open(chats[2])
    trigger(choose(window, 1, 3), "Delete 2 chats")
    qtbot.waitUntil(lambda: listed(window) == "db", timeout=5000)
    assert window.session.conversation is None  # one of them was shown
    assert window.sidebar.undo.accessibleName() == "Deleted 2 chats"
    window.sidebar.undo.button.click()
    qtbot.waitUntil(lambda: listed(window) == "dcba", timeout=5000)


def test_several_are_pinned_and_archived(qtbot: QtBot, window: MainWindow, chats: list[int]) -> None:
    trigger(choose(window, 2, 3), "Pin 2 chats to the top")
    qtbot.waitUntil(lambda: listed(window) == "badc", timeout=5000)
    assert chosen(window) == "ba"  # they are still chosen where they are now
    trigger(choose(window, 1, 2), "Pin 2 chats to the top")  # one is pinned already
    qtbot.waitUntil(lambda: listed(window) == "dbac", timeout=5000)
    trigger(choose(window, 0, 1), "Unpin 2 chats")
    qtbot.waitUntil(lambda: listed(window) == "adcb", timeout=5000)
    trigger(choose(window, 0, 3), "Archive 2 chats")
    qtbot.waitUntil(lambda: listed(window) == "dc", timeout=5000)
    assert window.sidebar.undo.accessibleName() == "Archived 2 chats"
    window.sidebar.archive_button.click()
    qtbot.waitUntil(lambda: listed(window) == "ab", timeout=5000)
    trigger(choose(window, 0, 1), "Bring 2 chats back from the archive")
    qtbot.waitUntil(lambda: listed(window) == "", timeout=5000)


def test_several_are_exported(qtbot: QtBot, window: MainWindow, chats: list[int]) -> None:
    trigger(choose(window, 0, 2), "Export 2 chats…")
    dialog = window.findChild(ExportDialog)
    assert isinstance(dialog, ExportDialog)
    qtbot.waitUntil(lambda: len(dialog.chooser.chosen()) == 2, timeout=5000)
    assert set(dialog.job().chats) == {chats[3], chats[1]}
    assert dialog.some_chats.isChecked()
    dialog.reject()


def test_a_language_has_as_many_plurals_as_it_needs(
    qtbot: QtBot, window: MainWindow, chats: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Polish(NullTranslations):
        def ngettext(self, one: str, many: str, count: int) -> str:
            return f"few: {many}" if count % 10 in (2, 3, 4) else f"many: {many}"

    monkeypatch.setattr(i18n, "_catalogue", Polish())
    menu = choose(window, 0, 1, 2)
    texts = [action.text() for action in menu.actions()]
    assert texts[0] == "few: Pin 3 chats to the top"
    assert all(text.startswith("few: ") for text in texts)
    window.chats.archive(tuple(chats[:3]), True)
    name = window.sidebar.undo.accessibleName
    qtbot.waitUntil(lambda: name() == "few: Archived 3 chats", timeout=5000)
    window.chats.archive(tuple(chats[:3]), False)
    qtbot.waitUntil(lambda: name() == "few: 3 chats are in the list again", timeout=5000)
    window.chats.delete(tuple(chats))
    qtbot.waitUntil(lambda: name() == "few: Deleted 4 chats", timeout=5000)


def test_where_one_of_several_is_left_the_chat_that_is_shown_is_marked(
    qtbot: QtBot, window: MainWindow, chats: list[int]
) -> None:
    with qtbot.waitSignal(window.session.opened):
        window.session.open(chats[0])
    choose(window, 0, 1)
    window.sidebar.search.setText('"text of d"')
    qtbot.waitUntil(lambda: listed(window) == "d", timeout=5000)
    assert chosen(window) == ""
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: listed(window) == "dcba", timeout=5000)
    assert chosen(window) == "a"


def test_the_menu_of_a_chat_that_is_not_chosen_is_its_own(window: MainWindow, chats: list[int]) -> None:
    choose(window, 0, 1)
    view = window.sidebar.list
    menu = view.menu_for(window.sidebar.model.index(3))
    assert [action.text() for action in menu.actions()][-1] == "Delete"
    assert menu.accessibleName() == "Chat “a”"


def test_clicks_and_keys_choose_as_everywhere(qtbot: QtBot, window: MainWindow, chats: list[int]) -> None:
    view, model = window.sidebar.list, window.sidebar.model

    def place(row: int) -> QPoint:
        return view.visualRect(model.index(row)).center()

    def click(row: int, modifier: Qt.KeyboardModifier) -> None:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, modifier, place(row))

    with qtbot.waitSignal(window.session.opened):
        click(0, Qt.KeyboardModifier.NoModifier)
    with qtbot.assertNotEmitted(window.session.opened):
        click(2, Qt.KeyboardModifier.ControlModifier)
    assert chosen(window) == "db"
    with qtbot.assertNotEmitted(window.session.opened):
        click(3, Qt.KeyboardModifier.ShiftModifier)
    assert "ba" in chosen(window)
    choose(window, 0, 1, 2)
    qtbot.keyClick(view, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: listed(window) == "a", timeout=5000)


def test_a_new_list_leaves_what_is_chosen(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, chats: list[int]
) -> None:
    choose(window, 1, 2)
    storage.run(ChatStore.add_message, chats[0], "user", "more")
    window.chats.refresh()
    qtbot.waitUntil(lambda: listed(window) == "adcb", timeout=5000)
    assert chosen(window) == "cb"
