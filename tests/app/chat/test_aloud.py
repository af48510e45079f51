"""What appears by itself is also said to screen readers."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.code import CopyButton
from app.chat.model_strip import ModelStrip
from app.composer.edit import LONG_PASTE
from app.window import MainWindow
from tests.app.chat.composing import paste, words
from tests.app.chat.hands import ask
from tests.app.fakes import ScriptedFactory, shortage

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    for module in ("chat.message", "chat.model_strip", "chat.code", "composer.long_paste"):
        monkeypatch.setattr(f"app.{module}.announce", lambda _owner, text: heard.append(text))
    return heard


def test_an_answer_that_failed(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, said: list[str]
) -> None:
    ask(qtbot, window)
    assert said == []  # the end of a good one is said sentence by sentence
    factory.script = [shortage()]
    ask(qtbot, window)
    assert len(said) == 1
    assert "The model does not fit." in said[0]


def test_a_model_that_could_not_be_loaded(qtbot: QtBot, said: list[str]) -> None:
    strip = ModelStrip()
    qtbot.addWidget(strip)
    strip.show_error(shortage())
    assert said == [str(shortage())]


def test_an_offer_to_attach_what_was_pasted(qtbot: QtBot, window: MainWindow, said: list[str]) -> None:
    paste(window, words("word " * LONG_PASTE))
    assert len(said) == 1
    assert said[0].startswith("You pasted a long text")


def test_that_something_was_copied(qtbot: QtBot, said: list[str]) -> None:
    button = CopyButton(lambda: "text", "Copy answer")
    qtbot.addWidget(button)
    button.click()
    assert said == ["Copied"]
