from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QTextEdit
from pytestqt.qtbot import QtBot

from app.chat.list_model import ChatListModel
from app.storage import ChatStore
from app.storage.thread import StorageThread
from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def fill(qtbot: QtBot, window: MainWindow, storage: StorageThread, chats: dict[str, list[str]]) -> list[int]:
    """Save chats, the last of them the latest, and wait until the list shows them."""

    def save(store: ChatStore) -> list[int]:
        ids = []
        for title, texts in chats.items():
            ids.append(store.create_conversation(title).id)
            for text in texts:
                store.add_message(ids[-1], "user", text)
        return ids

    saved: list[int] = []
    storage.run(save).then(saved.extend)
    qtbot.waitUntil(lambda: bool(saved), timeout=5000)
    window.chats.refresh()
    qtbot.waitUntil(lambda: len(listed(window)) == len(chats), timeout=5000)
    return saved


def listed(window: MainWindow) -> list[str]:
    model = window.sidebar.model
    return [str(model.index(row).data()) for row in range(model.rowCount())]


def choose(window: MainWindow, chat: int, text: str) -> None:
    """Choose an entry of the menu of a chat in the list."""
    sidebar = window.sidebar
    menu = sidebar.list.menu_for(sidebar.model.index(sidebar.model.row_of(chat)))
    next(action for action in menu.actions() if action.text() == text).trigger()
    menu.deleteLater()


def selected_text(window: MainWindow) -> list[str]:
    texts: list[Any] = [*window.page.view.findChildren(QTextEdit)]
    texts += window.page.view.findChildren(QPlainTextEdit)
    return [text.textCursor().selectedText() for text in texts if text.textCursor().hasSelection()]


def test_results_come_while_typing_and_enter_shows_the_place(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    filler = [f"line {number}\n\nmore of it" for number in range(60)]
    fill(qtbot, window, storage, {"Rome": [*filler, "the Needle is here", *filler], "Other": ["no"]})
    search = window.sidebar.search
    search.setFocus()
    qtbot.keyClicks(search, "needle the")
    qtbot.keyClick(search, Qt.Key.Key_Return)  # before the results are there
    qtbot.waitUntil(lambda: selected_text(window) == ["the"], timeout=5000)
    assert listed(window) == ["Rome"]
    assert window.sidebar.remark.text() == "1 chat found"
    view = window.page.view
    shown = next(message for message in view.views if "Needle" in message.content())
    qtbot.waitUntil(lambda: not shown.visibleRegion().isEmpty(), timeout=5000)
    assert len(view.views) < 121
    marks = window.sidebar.model.index(0).data(ChatListModel.MARKS)
    preview = window.sidebar.model.index(0).data(ChatListModel.PREVIEW)
    assert [preview[start : start + length] for start, length in marks] == ["the", "Needle"]
    qtbot.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    qtbot.waitUntil(lambda: listed(window) == ["Other", "Rome"], timeout=5000)


def test_the_arrow_leads_from_the_search_into_the_results(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    fill(qtbot, window, storage, {"Rome": ["x"], "Paris": ["x"]})
    window.activateWindow()
    window.sidebar.search.setFocus()
    qtbot.keyClick(window.sidebar.search, Qt.Key.Key_Down)
    assert window.sidebar.list.hasFocus()
    qtbot.keyClick(window.sidebar.list, Qt.Key.Key_Down)
    qtbot.keyClick(window.sidebar.list, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.session.conversation is not None, timeout=5000)
    assert window.page.title.text() == "Rome"


def test_from_a_place_in_the_middle_the_reader_goes_on_to_both_ends(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    (chat,) = fill(qtbot, window, storage, {"long": [f"message {number}" for number in range(200)]})
    with qtbot.waitSignal(window.session.opened):
        window.session.open(chat)
    view = window.page.view
    view.reveal(view.column.rows[100].id)
    qtbot.waitUntil(lambda: len(view.views) == 40, timeout=5000)
    assert [view.views[0].content(), view.views[-1].content()] == ["message 80", "message 119"]
    assert "80" in view.column.earlier.text()
    assert "80" in view.column.later.text()
    view.column.later.click()
    view.column.earlier.click()
    assert [view.views[0].content(), view.views[-1].content()] == ["message 40", "message 159"]
    view.column.later.click()
    assert view.views[-1].content() == "message 199"
    assert view.column.later.isHidden()
    view.column._lay_out(199)
    view.reveal(view.column.rows[0].id)
    qtbot.waitUntil(lambda: len(view.views) == 40, timeout=5000)
    assert view.views[0].content() == "message 0"
    assert view.column.earlier.isHidden()
    window.page.composer.set_text("sent from far above")
    window.page.composer.send_requested.emit("sent from far above")
    qtbot.waitUntil(lambda: len(view.column.rows) == 202 and not window.session.busy, timeout=5000)
    assert view.views[-1].content() == "Paris is the capital."


def test_a_pinned_chat_stays_on_top(qtbot: QtBot, window: MainWindow, storage: StorageThread) -> None:
    first, _, _ = fill(qtbot, window, storage, {"a": ["x"], "b": ["x"], "c": ["x"]})
    choose(window, first, "Pin to the top")
    qtbot.waitUntil(lambda: listed(window) == ["a", "c", "b"], timeout=5000)
    index = window.sidebar.model.index(0)
    assert "Pinned." in index.data(Qt.ItemDataRole.AccessibleDescriptionRole)
    choose(window, first, "Unpin")
    qtbot.waitUntil(lambda: listed(window) == ["c", "b", "a"], timeout=5000)


def test_an_archived_chat_is_out_of_the_way_and_can_be_had_again(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    first, second = fill(qtbot, window, storage, {"a": ["needle"], "b": ["x"]})
    sidebar = window.sidebar
    assert sidebar.archive_button.isHidden()
    choose(window, first, "Archive")
    qtbot.waitUntil(lambda: listed(window) == ["b"], timeout=5000)
    assert sidebar.archive_button.text() == "Archive (1)"
    sidebar.search.setText("needle")
    qtbot.waitUntil(lambda: listed(window) == ["a"], timeout=5000)  # a search finds it all the same
    sidebar.search.clear()
    sidebar.archive_button.click()
    qtbot.waitUntil(lambda: sidebar.remark.text() == "Archived chats", timeout=5000)
    assert listed(window) == ["a"]
    choose(window, first, "Bring back from the archive")
    qtbot.waitUntil(lambda: sidebar.remark.text() == "The archive is empty.", timeout=5000)
    sidebar.archive_button.click()
    qtbot.waitUntil(lambda: listed(window) == ["b", "a"], timeout=5000)
    choose(window, second, "Archive")
    qtbot.waitUntil(lambda: listed(window) == ["a"], timeout=5000)
    qtbot.mouseClick(sidebar.undo.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: listed(window) == ["b", "a"], timeout=5000)


def test_a_duplicate_is_opened_and_is_a_chat_of_its_own(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    (chat,) = fill(qtbot, window, storage, {"a": ["one", "two"]})
    choose(window, chat, "Duplicate")
    qtbot.waitUntil(lambda: listed(window) == ["a (copy)", "a"], timeout=5000)
    qtbot.waitUntil(lambda: window.page.title.text() == "a (copy)", timeout=5000)
    assert [view.content() for view in window.page.view.views] == ["one", "two"]


def test_the_menu_keeps_up_with_the_chat_that_is_shown(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    chat, _ = fill(qtbot, window, storage, {"a": ["x"], "b": ["x"]})
    actions = window.menus.actions
    assert not actions["pin"].isEnabled()
    with qtbot.waitSignal(window.session.opened):
        window.session.open(chat)
    actions["pin"].trigger()
    qtbot.waitUntil(lambda: listed(window) == ["a", "b"], timeout=5000)
    actions["pin"].trigger()
    qtbot.waitUntil(lambda: listed(window) == ["b", "a"], timeout=5000)
    actions["archive"].trigger()
    qtbot.waitUntil(lambda: listed(window) == ["b"], timeout=5000)
    actions["archive"].trigger()
    qtbot.waitUntil(lambda: listed(window) == ["b", "a"], timeout=5000)
    actions["duplicate"].trigger()
    qtbot.waitUntil(lambda: listed(window) == ["a (copy)", "b", "a"], timeout=5000)


def test_a_chat_that_is_not_in_the_list_is_renamed_all_the_same(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    chat, _ = fill(qtbot, window, storage, {"a": ["x"], "b": ["x"]})
    with qtbot.waitSignal(window.session.opened):
        window.session.open(chat)
    window.menus.actions["archive"].trigger()
    qtbot.waitUntil(lambda: listed(window) == ["b"], timeout=5000)
    window.sidebar.search.setText("nowhere")
    qtbot.waitUntil(lambda: listed(window) == [], timeout=5000)
    window.menus.actions["rename"].trigger()
    qtbot.waitUntil(lambda: bool(window.sidebar.list.findChildren(QLineEdit)), timeout=5000)
    editor = window.sidebar.list.findChildren(QLineEdit)[0]
    editor.setText("renamed")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: listed(window) == ["renamed"], timeout=5000)
    assert window.page.title.text() == "renamed"


def test_a_chat_that_is_opened_while_a_title_is_typed_is_marked_afterwards(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    chat, other = fill(qtbot, window, storage, {"a": ["x"], "b": ["x"]})
    window.sidebar.rename(chat, archived=False)
    with qtbot.waitSignal(window.session.opened):
        window.session.open(other)
    qtbot.keyClick(window.sidebar.list.findChildren(QLineEdit)[0], Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: [one.id for one in window.sidebar.list.chosen()] == [other], timeout=5000)


def test_what_happens_meanwhile_leaves_a_title_that_is_being_typed(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    chat, other = fill(qtbot, window, storage, {"first words": ["x"], "other": ["x"]})
    window.sidebar.rename(chat, archived=False)
    editor = window.sidebar.list.findChildren(QLineEdit)[0]
    editor.selectAll()
    qtbot.keyClicks(editor, "mi")
    seen: list[object] = []
    window.session.rename(chat, "by the model")
    window.session.rename(other, "another")
    storage.run(ChatStore.conversations).then(seen.append)
    qtbot.waitUntil(lambda: bool(seen), timeout=5000)
    window.sidebar.model.set_answering(chat)  # its line is painted anew
    qtbot.keyClicks(editor, "ne")
    assert editor.text() == "mine"
    assert listed(window) == ["other", "first words"]
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: listed(window) == ["another", "mine"], timeout=5000)
