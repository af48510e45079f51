"""The parameters' window: by the keyboard, with what it does to presets and to the chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.dialogs import MessageDialog
from app.presets.dialog import ParametersDialog, PresetDialog
from app.presets.files import PresetFiles, imported_words, read_presets
from app.presets.format import to_text
from app.presets.name_dialog import NameDialog
from app.presets.parameters import Parameters
from app.presets.preset import ChatSetup, Preset
from app.presets.store import ImportedPresets, PresetStore
from app.settings import SettingsStore
from engine.errors import EngineError
from engine.params import GenerationParams, OverflowPolicy, SamplingParams

MODEL = GenerationParams(SamplingParams(temperature=0.6, top_k=40))
SETUP = ChatSetup("precise", "Be brief.", Parameters(temperature=0.2, top_p=0.9))

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def store(tmp_path: Path) -> PresetStore:
    return PresetStore(tmp_path / "presets.json", SettingsStore(None))


@pytest.fixture
def dialog(qtbot: QtBot, store: PresetStore) -> ParametersDialog:
    made = ParametersDialog(store, SETUP, MODEL)
    qtbot.addWidget(made)
    made.show()
    return made


def choose(dialog: ParametersDialog, preset_id: str) -> None:
    index = dialog.bar.box.findData(preset_id)
    dialog.bar.box.setCurrentIndex(index)
    dialog.bar.box.activated.emit(index)


def entry(dialog: ParametersDialog, words: str) -> QAction:
    return next(action for action in dialog.bar.menu().actions() if words in action.text())


def type_into(qtbot: QtBot, widget: QWidget, text: str) -> None:
    widget.setFocus()
    line: Any = widget.lineEdit() if isinstance(widget, QAbstractSpinBox) else widget
    line.selectAll()
    qtbot.keyClick(widget, Qt.Key.Key_Delete)
    qtbot.keyClicks(widget, text)


@pytest.mark.parametrize(
    "parameters",
    [
        Parameters(),
        Parameters(0, 0, 0.01, 0, 0.01, 0, 1),
        Parameters(10, 1_000_000, 1, 0.99, 10, 2**63 - 1, 1_000_000, 16, 16, OverflowPolicy.KEEP_LATEST),
    ],
)
def test_the_form_gives_back_what_it_shows(qtbot: QtBot, store: PresetStore, parameters: Parameters) -> None:
    setup = ChatSetup("x", "Two\nlines.", parameters)
    dialog = ParametersDialog(store, setup, None)
    qtbot.addWidget(dialog)
    assert dialog.form.setup == setup


def test_values_are_typed_and_used(qtbot: QtBot, dialog: ParametersDialog) -> None:
    form, applied = dialog.form, []
    dialog.applied.connect(applied.append)
    type_into(qtbot, form.numbers["temperature"], "1.25")
    type_into(qtbot, form.numbers["top_p"], "")  # back to the model's own
    type_into(qtbot, form.numbers["max_tokens"], "500")
    type_into(qtbot, form.seed, "42")
    form.overflow.setFocus()
    qtbot.keyClick(form.overflow, Qt.Key.Key_End)
    assert dialog.bar.box.currentText() == "Precise, changed"
    qtbot.keyClick(form.numbers["top_k"], Qt.Key.Key_Return)  # presses the default button
    expected = Parameters(1.25, seed=42, max_tokens=500, overflow=OverflowPolicy.KEEP_LATEST)
    assert applied == [ChatSetup("precise", "Be brief.", expected)]
    assert not dialog.isVisible()


def test_what_is_left_to_the_model_says_the_models_value(dialog: ParametersDialog) -> None:
    assert dialog.form.numbers["top_k"].text() == "The model's own: 40"
    assert dialog.form.numbers["temperature"].number == 0.2


@pytest.mark.parametrize("text", ["abc", "1.5", "-2", "9" * 25, "٣"])
def test_an_impossible_seed_is_explained_and_not_used(
    qtbot: QtBot, dialog: ParametersDialog, text: str
) -> None:
    applied: list[object] = []
    dialog.applied.connect(applied.append)
    QGuiApplication.clipboard().setText(text)
    dialog.form.seed.paste()
    assert "Choose a whole number" in dialog.form.fault
    dialog.use.click()
    assert applied == []
    assert dialog.form.seed.hasFocus()
    type_into(qtbot, dialog.form.seed, "7")
    assert dialog.form.fault == ""


def test_a_chosen_preset_fills_the_form_and_leaves_a_written_prompt(dialog: ParametersDialog) -> None:
    choose(dialog, "creative")
    assert dialog.form.setup.parameters.temperature == 1.1
    assert dialog.form.prompt.toPlainText() == "Be brief."
    choose(dialog, "code")
    assert "programmer" in dialog.form.prompt.toPlainText()
    choose(dialog, "balanced")
    assert dialog.form.prompt.toPlainText() == ""
    assert dialog.form.setup == ChatSetup("balanced")


def test_own_values_that_a_preset_replaced_can_be_had_again(dialog: ParametersDialog) -> None:
    choose(dialog, "creative")
    assert dialog.undo.isHidden()  # the prompt stays, and the values were those of a preset
    dialog.form.numbers["top_k"].setValue(40)
    dialog.form.prompt.setPlainText("My long prompt.")
    mine = dialog.form.setup
    choose(dialog, "code")
    assert dialog.form.prompt.toPlainText() != "My long prompt."
    assert dialog.undo.isVisible()
    dialog.undo.button.click()
    assert dialog.form.setup == mine
    assert dialog.bar.box.currentText() == "Creative, changed"


def test_a_search_switches_off_what_has_no_effect(dialog: ParametersDialog) -> None:
    dialog.form.numbers["beams"].setValue(4)
    assert not dialog.form.numbers["temperature"].isEnabled()
    assert not dialog.form.seed.isEnabled()
    assert dialog.form.numbers["repetition_penalty"].isEnabled()
    dialog.form.numbers["beams"].setValue(1)
    assert dialog.form.numbers["temperature"].isEnabled()


def test_values_are_saved_as_an_own_preset(
    qtbot: QtBot, dialog: ParametersDialog, store: PresetStore
) -> None:
    naming = dialog.bar.ask_name()
    qtbot.keyClicks(naming.field, "Precise")
    naming.accept()
    assert "already a preset" in naming.complaint.text()
    assert naming.isVisible()
    naming.field.setText("Mine")
    naming.accept()
    (mine,) = store.own
    assert (mine.system_prompt, mine.parameters) == ("Be brief.", SETUP.parameters)
    assert dialog.bar.box.currentText() == "Mine"
    assert dialog.form.setup.preset == mine.id


def test_own_presets_are_changed_renamed_and_deleted_with_undo(
    qtbot: QtBot, dialog: ParametersDialog, store: PresetStore
) -> None:
    assert not entry(dialog, "Delete").isEnabled()  # of a shipped one
    mine = store.add("Mine", SETUP)
    choose(dialog, mine.id)
    dialog.form.numbers["temperature"].setValue(0.7)
    entry(dialog, "Keep the changes").trigger()
    changed = store.find(mine.id)
    assert changed is not None
    assert changed.parameters.temperature == 0.7
    entry(dialog, "new chats").trigger()
    assert store.default.id == mine.id
    renaming = dialog.bar.ask_new_name()
    assert isinstance(renaming, NameDialog)
    renaming.field.setText("Ours")
    renaming.accept()
    assert dialog.bar.box.currentText() == "Ours"
    entry(dialog, "Delete").trigger()
    assert store.own == ()
    assert dialog.bar.box.currentText() == "Own values"
    dialog.undo.button.click()
    assert [preset.name for preset in store.own] == ["Ours"]
    assert dialog.bar.box.currentText() == "Ours"


def test_back_to_the_presets_values(dialog: ParametersDialog) -> None:
    dialog.form.numbers["temperature"].setValue(2)
    entry(dialog, "Back to").trigger()
    assert dialog.form.setup == SETUP


def test_changes_are_not_thrown_away_without_a_question(qtbot: QtBot, dialog: ParametersDialog) -> None:
    dialog.form.prompt.setPlainText("A long and careful prompt")
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isVisible()
    (question,) = dialog.findChildren(MessageDialog)
    question.reject()
    assert dialog.isVisible()
    dialog.form.show_setup(SETUP)
    dialog.reject()  # nothing has changed: no question
    assert not dialog.isVisible()


def test_everything_has_a_name_and_is_reached_by_tab(qtbot: QtBot, dialog: ParametersDialog) -> None:
    kinds = (QComboBox, QAbstractSpinBox, QPlainTextEdit, QPushButton)
    wanted = {w for kind in kinds for w in dialog.findChildren(kind) if w.isVisible() and w.isEnabled()}
    assert all(w.accessibleName() or w.text() for w in wanted if not isinstance(w, QComboBox))  # type: ignore[attr-defined]
    reached: set[QWidget] = set()
    dialog.activateWindow()
    dialog.bar.box.setFocus()
    for _ in range(60):
        focused = dialog.focusWidget()
        if focused is not None:
            reached.add(focused)
        qtbot.keyClick(focused or dialog, Qt.Key.Key_Tab)
    assert wanted <= reached


def test_a_preset_is_edited_by_itself(qtbot: QtBot, store: PresetStore) -> None:
    mine = store.add("Mine", SETUP)
    dialog = PresetDialog(mine, lambda setup: store.change(mine.id, setup), None)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.form.prompt.setPlainText("Else.")
    dialog.use.click()
    assert store.own[0].system_prompt == "Else."
    failing = PresetDialog(mine, lambda setup: store.change("gone", setup), None)
    qtbot.addWidget(failing)
    failing.show()
    failing.use.click()
    assert failing.isVisible()
    assert failing.findChildren(MessageDialog)
    failing.hide()


def test_presets_go_out_to_a_file_and_come_in_again(
    qtbot: QtBot, dialog: ParametersDialog, store: PresetStore, tmp_path: Path
) -> None:
    store.add("Mine", SETUP)
    target = tmp_path / "mine.json"
    with qtbot.waitSignal(dialog.bar.files.told):
        dialog.bar.files.export_to(store.own, target)
    assert target.read_text("utf-8") == to_text(store.own)
    with qtbot.waitSignal(dialog.bar.files.told) as told:
        dialog.bar.files.import_file(target)
    assert told.args == ["1 was here already."]
    store.delete(store.own[0].id)
    with qtbot.waitSignal(dialog.bar.files.told) as told:
        dialog.bar.files.import_file(target)
    assert told.args == ["1 preset was added: “Mine”."]
    assert dialog.told.text() == told.args[0]


def test_a_file_that_holds_no_presets_is_explained(
    qtbot: QtBot, dialog: ParametersDialog, store: PresetStore, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text("{}")
    dialog.bar.files.import_file(tmp_path / "x.json")
    qtbot.waitUntil(lambda: bool(dialog.findChildren(MessageDialog)))
    assert store.own == ()
    with pytest.raises(EngineError, match="could not be read"):
        read_presets(tmp_path / "missing.json")


def test_files_are_asked_for(qtbot: QtBot, dialog: ParametersDialog, store: PresetStore) -> None:
    store.add("Mine", SETUP)
    files: PresetFiles = dialog.bar.files
    for asked in (files.ask_import(), files.ask_export(store.own)):
        assert asked.isVisible()
        assert "json" in asked.nameFilters()[0]
        asked.reject()


def test_what_an_import_did_in_words() -> None:
    many = tuple(Preset(str(n), f"P{n}") for n in range(7))
    assert imported_words(ImportedPresets(many, 2)).startswith("7 presets were added: “P0”")
    assert imported_words(ImportedPresets(many, 2)).endswith("…. 2 were here already.")
    assert imported_words(ImportedPresets((), 0)) == "The file has no presets."


def test_seeds_are_lines_of_text(dialog: ParametersDialog) -> None:
    assert isinstance(dialog.form.seed, QLineEdit)
    dialog.form.seed.show_number(2**63 - 1)
    assert dialog.form.seed.number == 2**63 - 1
