"""The window used at random, faster than it can follow: nothing breaks, and what is shown is what is saved.

Qt's warnings and exceptions in its callbacks fail these tests as everywhere. A seed gives the same actions
again, apart from how far the threads are meanwhile.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QToolButton
from pytestqt.qtbot import QtBot

from app.chat.message import AssistantMessage, UserMessage
from app.chat.sidebar import SEARCH_DELAY_MS
from app.dialogs import MessageDialog
from app.paths import database_path
from app.presets.preset import setup_from
from app.storage import ChatStore, MessageState, open_store
from app.storage.thread import StorageThread
from app.window import MainWindow
from engine.text import clean_text
from tests.app.chat.hands import press, read
from tests.app.fakes import ScriptedFactory, shortage

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark

T = TypeVar("T")

ACTIONS = 120
SCRIPTS: list[list[str | BaseException]] = [
    ["Paris ", "is the ", "capital."],
    ["- a\n", "```\nx = 1\n"],
    ["$x^2$ שלום 👩‍👩‍👧"],
    [""],
    ["half ", shortage()],
]
COMMANDS = (
    "new",
    "pin",
    "archive",
    "duplicate",
    "delete",
    "regenerate",
    "continue",
    "stop",
    "panel",
    "zoom_in",
)


class User:
    """Does something with the window at random, and looks whether all is well."""

    def __init__(
        self, qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory, seed: int
    ) -> None:
        self._qtbot, self._window, self._storage, self._factory = qtbot, window, storage, factory
        self._random = random.Random(seed)
        self._words = 0
        self._sent: set[str] = set()  # words that were seen in saved messages
        often = [self.ask, self.write, self.switch, self.wait]
        seldom = [self.edit, self.change_edit, self.end_edit, self.use_tool, self.undo, self.search]
        others = [self.rename, self.call_back, self.resize, self.take_preset, self.command]
        self._actions: list[Callable[[], object]] = [*often * 3, *seldom, *others]

    def act(self) -> None:
        self._random.choice(self._actions)()
        if self._random.random() < 0.5:
            QApplication.processEvents()

    def write(self) -> None:
        self._words += 1
        ending = self._random.choice((" ", "\n", " שלום 👩‍👩‍👧", "\0\a"))
        self._window.page.composer.edit.insertPlainText(f"w{self._words}w{ending}")

    def ask(self) -> None:
        self._factory.script = self._random.choice(SCRIPTS)
        self.write()
        press(self._qtbot, self._window)

    def switch(self) -> None:
        rows = self._window.sidebar.model.rowCount()
        if rows:
            index = self._window.sidebar.model.index(self._random.randrange(rows))
            self._window.sidebar.list.activated.emit(index)

    def wait(self) -> None:
        QTest.qWait(self._random.randrange(20))

    def edit(self) -> None:
        if self._views:
            self._random.choice(self._views).begin_edit()

    def change_edit(self) -> None:
        for view in self._views:
            if view.editor is not None:
                view.editor.edit.insertPlainText("changed ")

    def end_edit(self) -> None:
        for view in self._views:
            if view.editor is not None:
                save = self._random.random() < 0.5 and view.editor.save_button.isEnabled()
                (view.editor.save_button if save else view.editor.cancel_button).click()

    def use_tool(self) -> None:
        if self._views:
            tools = self._random.choice(self._views).tools
            buttons = [button for button in tools.findChildren(QToolButton) if button is not tools.more]
            self._click([button for button in buttons if button.isVisible() and button.isEnabled()])

    def undo(self) -> None:
        self._click([self._window.sidebar.undo.button] if self._window.sidebar.undo.isVisible() else [])

    def search(self) -> None:
        self._window.sidebar.search.setText(self._random.choice(("", "", "paris", "w1w", '"capital', "*\0")))

    def rename(self) -> None:
        self._window.menus.actions["rename"].trigger()
        chats = self._window.sidebar.list
        editor = chats.indexWidget(chats.currentIndex())  # not one of before, on its way out
        if editor is not None:
            self._qtbot.keyClicks(editor, self._random.choice(("title", "")))
            self._qtbot.keyClick(editor, Qt.Key.Key_Return)
            QApplication.processEvents()

    def call_back(self) -> None:
        press(self._qtbot, self._window, self._random.choice((Qt.Key.Key_Up, Qt.Key.Key_Down)))

    def resize(self) -> None:
        self._window.resize(self._random.choice((1, 700, 1300)), self._random.choice((1, 500, 900)))

    def take_preset(self) -> None:
        preset = self._random.choice(self._window.presets.all)
        self._window.session.parameters.change(setup_from(preset))

    def command(self) -> None:
        self._window.menus.actions[self._random.choice(COMMANDS)].trigger()
        for dialog in self._window.findChildren(MessageDialog):
            dialog.reject()

    def look(self) -> None:
        """Wait until nothing happens any more; then everything must show what is saved."""
        window, session = self._window, self._window.session
        self._settle()
        window.sidebar.list.end_edit()  # the list stays as it is while a title is edited
        self._settle()
        shown = None if session.conversation is None else session.conversation.id
        saved = [] if shown is None else self._read(lambda store: store.messages(shown))
        assert [(row.id, row.content, row.state) for row in session.messages] == [
            (row.id, row.content, row.state) for row in saved
        ]
        assert [(view.row.id, view.content()) for view in self._views] == [
            (row.id, row.content) for row in saved
        ]
        assert all(row.state is not MessageState.STREAMING for row in saved)
        assert window.page.stack.currentWidget() is (window.page.view if saved else window.page.welcome)
        if shown is not None:
            assert window.page.title.text() == self._read(lambda store: store.conversation(shown)).title
        marked = [chat.id for chat in window.sidebar.list.chosen()]
        assert marked == ([shown] if window.sidebar.model.row_of(shown) >= 0 else [])
        assert self._read(lambda store: store.next_message(shown)) == ""
        sent = self._read(_words_sent)
        assert self._sent <= sent
        self._sent = sent

    @property
    def draft(self) -> tuple[int | None, str]:
        """The chat that is shown, and what is written there and not sent."""
        chat = self._window.session.conversation
        content = self._window.page.writing._history.to_keep(self._window.page.composer.content)
        return None if chat is None else chat.id, clean_text(content)

    @property
    def _views(self) -> list[UserMessage | AssistantMessage]:
        return self._window.page.view.views

    def _click(self, buttons: Sequence[QAbstractButton]) -> None:
        if buttons:
            self._random.choice(buttons).click()

    def _settle(self) -> None:
        for _ in range(3):  # a message that waited, a list that is read once more
            self._qtbot.waitUntil(lambda: not self._window.session.busy, timeout=5000)
            self._read(lambda store: None)
            QTest.qWait(SEARCH_DELAY_MS + 20)

    def _read(self, ask: Callable[[ChatStore], T]) -> T:
        return cast(T, read(self._qtbot, self._storage, ask))


def _words_sent(store: ChatStore) -> set[str]:
    """The words of all messages, those in deleted chats and turns too."""
    query = "SELECT content FROM message UNION ALL SELECT content FROM deleted_turn"
    return set(re.findall(r"w\d+w", " ".join(str(row[0]) for row in store._db.execute(query))))


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_done_all_shows_what_is_saved(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory, seed: int
) -> None:
    user = User(qtbot, window, storage, factory, seed)
    for number in range(1, ACTIONS + 1):
        user.act()
        if number % 30 == 0:
            user.look()
    user.write()
    chat, draft = user.draft
    assert window.close()
    opened = open_store(database_path())
    kept = opened.store.draft(chat)
    opened.store.close()
    assert kept == draft
    assert opened.notices == ()
