"""The parameters, the details of an answer and the line of what is no longer seen, in the window."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.chat.details import DetailsDialog
from app.chat.message import AssistantMessage
from app.chat.notices import Action
from app.presets.parameters import Parameters
from app.presets.preset import ChatSetup
from app.window import MainWindow
from engine.params import OverflowPolicy
from tests.app.chat.test_window import answer, ask
from tests.app.fakes import ScriptedFactory

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "raise")


def details(window: MainWindow) -> DetailsDialog:
    return window.findChildren(DetailsDialog)[-1]


def waiting(view: AssistantMessage) -> list[str]:
    return [label.text() for label in view.findChildren(QLabel) if label.isVisible()]


def test_the_button_says_how_the_chat_is_answered_and_changes_it(qtbot: QtBot, window: MainWindow) -> None:
    button = window.page.parameters
    assert button.text().startswith("Balanced")
    button.setFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    dialog = button.dialog
    assert dialog is not None
    qtbot.keyClick(dialog.bar.box, Qt.Key.Key_Down)
    qtbot.keyClick(dialog.form.numbers["top_k"], Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: button.dialog is None)
    assert button.text() == "Precise"
    assert "temperature 0.2" in button.toolTip()
    assert button.accessibleName() == "Parameters of this chat: Precise"


def test_in_a_narrow_page_the_title_has_the_room_of_the_presets_name(
    qtbot: QtBot, window: MainWindow
) -> None:
    page, button, title = window.page, window.page.parameters, window.page.title
    title.setText("A long title of a chat")
    window.resize(1400, 700)
    style = Qt.ToolButtonStyle
    qtbot.waitUntil(lambda: button.toolButtonStyle() == style.ToolButtonTextBesideIcon)
    window.resize(window.minimumSizeHint().width(), 700)
    qtbot.waitUntil(lambda: page.width() < 400 and button.toolButtonStyle() == style.ToolButtonIconOnly)
    qtbot.waitUntil(lambda: title.width() > button.width())
    assert button.accessibleName() == "Parameters of this chat: Balanced"


def test_the_menu_opens_the_parameters_once(window: MainWindow) -> None:
    window.menus.actions["parameters"].trigger()
    first = window.page.parameters.dialog
    assert first is not None
    assert first.isVisible()
    window.page.parameters.open_parameters()
    assert window.page.parameters.dialog is first
    first.reject()


def test_the_details_of_an_answer_and_the_same_answer_again(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    window.session.parameters.change(ChatSetup("", "", Parameters(temperature=0.8, max_tokens=99)))
    ask(qtbot, window)
    assert answer(window)._figures.toolTip().endswith("temperature 0.8, seed 7")
    window.menus.actions["details"].trigger()
    shown = dict(details(window).facts)
    assert shown["Seed"] == "7"
    assert shown["Words chosen by"] == "temperature 0.8"
    assert shown["Longest answer"] == "99 tokens"
    assert shown["Context in use after it"] == "15 of 512 tokens"
    details(window).copy.click()
    assert "Seed: 7" in QGuiApplication.clipboard().text()
    details(window).again.click()
    qtbot.waitUntil(lambda: len(factory.params) == 2 and not window.session.busy, timeout=5000)
    assert factory.params[1].sampling.seed == 7
    assert len(answer(window).row.versions) == 2


def test_an_answers_menu_leads_to_its_details_and_to_itself_again(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    ask(qtbot, window)
    entries = {action.text(): action for action in answer(window).tools.menu().actions()}
    entries["Details and seed…"].trigger()
    assert details(window).again.text() == "&Answer again in the same way"  # greedy: there is no seed
    details(window).accept()
    entries["Answer again with the same seed"].trigger()
    qtbot.waitUntil(lambda: len(factory.params) == 2 and not window.session.busy, timeout=5000)


def test_a_line_stands_where_the_models_sight_ends(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    window.session.parameters.change(ChatSetup("", "", Parameters(overflow=OverflowPolicy.DROP_OLDEST)))
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    assert all(view.boundary is None for view in window.page.view.views)
    factory.dropped = 2
    ask(qtbot, window, "Three")
    lines = [place for place, view in enumerate(window.page.view.views) if view.boundary is not None]
    assert lines == [2]
    line = window.page.view.views[2].boundary
    assert line is not None
    assert line.accessibleName() == "The model no longer sees the messages above"
    assert window.session.conversation is not None
    chat = window.session.conversation.id
    window.session.new_chat()
    with qtbot.waitSignal(window.session.opened):
        window.session.open(chat)  # it is saved
    assert window.page.view.views[2].boundary is not None
    window.menus.actions["details"].trigger()
    assert dict(details(window).facts)["Left out"] == "Written without the first 2 messages of the chat"
    details(window).accept()
    question = window.page.view.views[2]
    question.begin_edit()
    assert question.layout().indexOf(question.editor) == 1  # below the line
    factory.dropped = 0
    ask(qtbot, window, "Four")
    assert all(view.boundary is None for view in window.page.view.views)


def test_a_search_says_how_far_it_is(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    factory.gate = threading.Event()
    window.session.parameters.change(ChatSetup("", "", Parameters(beams=4)))
    window.session.send("Hello")
    expected = "Following 4 beginnings at once, 1 token so far…"
    qtbot.waitUntil(lambda: factory.emitted == 1 and len(window.page.view.views) == 2, timeout=5000)
    qtbot.waitUntil(lambda: expected in waiting(answer(window)), timeout=5000)
    factory.gate.set()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    assert not any("beginnings" in text for text in waiting(answer(window)))


def test_versions_can_be_turned_over_after_several_answers(qtbot: QtBot, window: MainWindow) -> None:
    window.session.parameters.change(ChatSetup("", "", Parameters(temperature=1, answers=3)))
    ask(qtbot, window)
    assert answer(window).tools.place.text() == "1/3"
    answer(window).tools.later.click()
    qtbot.waitUntil(lambda: answer(window).content().startswith("2: "), timeout=5000)


def test_a_full_context_leads_to_the_parameters(window: MainWindow) -> None:
    window.page.view.action.emit(Action.PARAMETERS, 0)
    dialog = window.page.parameters.dialog
    assert dialog is not None
    dialog.reject()


def test_the_count_of_tokens_follows_the_parameters(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "One")
    composer = window.page.composer
    qtbot.keyClicks(composer.edit, "two words")
    qtbot.waitUntil(lambda: "of 512 tokens" in composer._tokens.text(), timeout=5000)
    prompt = "word " * 600
    window.session.parameters.change(ChatSetup("", prompt))
    qtbot.waitUntil(lambda: "too long" in composer._tokens.text(), timeout=5000)
    window.session.parameters.change(ChatSetup(""))
    qtbot.waitUntil(lambda: composer._tokens.text().endswith("of 512 tokens"), timeout=5000)
    composer.set_content("")
