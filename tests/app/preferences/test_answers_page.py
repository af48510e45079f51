"""The page of the presets: the default, and the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.dialogs import MessageDialog
from app.preferences.answers_page import AnswersPage
from app.presets.dialog import PresetDialog
from app.presets.parameters import Parameters
from app.presets.preset import ChatSetup
from app.presets.store import PresetStore
from app.settings import SettingsStore, registry
from engine.errors import FileError
from engine.params import GenerationParams

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from app.preferences.dialog import PreferencesDialog

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
MINE = ChatSetup("", "Be brief.", Parameters(temperature=0.4))


@pytest.fixture
def presets(settings: SettingsStore) -> PresetStore:
    return PresetStore(None, settings)


@pytest.fixture
def page(qtbot: QtBot, settings: SettingsStore, presets: PresetStore) -> AnswersPage:
    made = AnswersPage(settings, presets, GenerationParams())
    qtbot.addWidget(made)
    made.show()
    return made


def listed(page: AnswersPage) -> list[str]:
    return [page.list.item(row).text() for row in range(page.list.count())]


def test_the_default_of_new_chats_is_chosen_among_all(page: AnswersPage, presets: PresetStore) -> None:
    mine = presets.add("Mine", MINE)
    box = page._box
    assert box.itemText(box.count() - 1) == "Mine"
    box.setCurrentIndex(box.count() - 1)
    assert presets.default == mine
    presets.delete(mine.id)
    assert box.currentText().startswith("Balanced")


def test_a_preset_is_made_edited_renamed_and_deleted_with_undo(
    qtbot: QtBot, page: AnswersPage, presets: PresetStore
) -> None:
    assert not page.edit.isEnabled()  # a shipped one is chosen
    naming = page.ask_name()
    naming.field.setText("Mine")
    naming.accept()
    assert listed(page)[-1] == "Mine (yours)"
    assert page.list.currentItem().text() == "Mine (yours)"
    page.edit.click()
    (editing,) = page.findChildren(PresetDialog)
    editing.form.prompt.setPlainText("Be brief.")
    editing.use.click()
    assert presets.own[0].system_prompt == "Be brief."
    assert "System prompt: “Be brief.”" in page.values.text()
    renaming = page.ask_new_name()
    assert renaming is not None
    renaming.field.setText("Ours")
    renaming.accept()
    assert page.list.currentItem().text() == "Ours (yours)"
    page.delete.click()
    assert presets.own == ()
    page.undo.button.click()
    assert [preset.name for preset in presets.own] == ["Ours"]


def test_what_cannot_be_saved_is_told(
    dialog: PreferencesDialog, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    page = dialog.answers
    page._presets.add("Mine", MINE)
    page.list.setCurrentRow(page.list.count() - 1)

    def full(*_: object) -> None:
        raise FileError("The disk is full.")

    monkeypatch.setattr(page._presets, "_replace", full)
    page.delete.click()
    (told,) = dialog.findChildren(MessageDialog)
    assert told.accessibleName() == "The disk is full."
    assert len(page._presets.own) == 1
    assert not page.undo.isVisible()
    told.reject()


def test_the_choice_follows_the_settings(page: AnswersPage, settings: SettingsStore) -> None:
    settings.set(registry.DEFAULT_PRESET, "code")
    assert page._box.currentText() == "Code"
    page.close_page()
    assert settings._listeners == []
