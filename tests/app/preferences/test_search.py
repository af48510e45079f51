"""Settings are found by their names, by what is said about them, and by other words for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.preferences.search import Entry, find
from app.settings import OPTIONS
from app.settings.registry import BY_KEY

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from app.preferences.dialog import PreferencesDialog

ENTRIES = [
    Entry(0, "Page", option.key, option.label, option.help, option.synonyms)
    for option in OPTIONS
    if option.visible
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key)
def test_every_setting_is_found_first_by_its_whole_name(entry: Entry) -> None:
    assert find(ENTRIES, entry.label.upper())[0] is entry


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("quantization", "engine.precision"),
        ("dark mode", "appearance.theme"),
        ("VRAM", "engine.vram_budget_gib"),
        ("ram other programs", "engine.ram_reserve_gib"),
        ("temperature", "chat.preset"),
        ("animation", "appearance.reduced_motion"),
        ("bigger", "appearance.zoom"),
        ("cores", "engine.threads"),
        ("persona", "chat.preset"),
        ("KV", "engine.context_length"),
        ("ｃｏｒｅｓ", "engine.threads"),  # full-width letters of an East Asian keyboard
    ],
)
def test_other_words_find_it_too(query: str, key: str) -> None:
    assert key in [entry.key for entry in find(ENTRIES, query)]


def test_every_word_must_be_there_and_short_ones_begin_a_word() -> None:
    assert find(ENTRIES, "temperature zebra") == []
    entries = [Entry(0, "", "a", "Top-k"), Entry(0, "", "b", "Stop")]
    assert [entry.key for entry in find(entries, "k")] == ["a"]
    assert [entry.key for entry in find(entries, "top")] == ["a", "b"]


@given(st.text())
def test_any_query_is_answered(query: str) -> None:
    found = find(ENTRIES, query)
    assert len(found) == len(set(map(id, found)))
    assert bool(query.split()) or found == []


def test_every_option_that_people_choose_has_its_consequence_and_other_words() -> None:
    for entry in ENTRIES:
        assert entry.help.endswith(".")
        assert len(entry.help) > 30, entry.key
        assert entry.synonyms, entry.key


class TestInTheDialog:
    def test_ctrl_f_a_word_and_enter_lead_to_the_setting(
        self, qtbot: QtBot, dialog: PreferencesDialog
    ) -> None:
        qtbot.keyClick(dialog, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
        assert QApplication.focusWidget() is dialog.search.field
        qtbot.keyClicks(dialog.search.field, "reserve")
        assert not dialog.list.isVisible()
        assert "found" in dialog.search.outcome.text()
        qtbot.keyClick(dialog.search.field, Qt.Key.Key_Return)
        row = dialog.model.rows["engine.ram_reserve_gib"]
        assert dialog.stack.currentIndex() == dialog.pages.index(dialog.model)
        assert row.property("found") is True
        visible = row.visibleRegion().boundingRect()
        assert visible.height() >= row.editor.height()  # scrolled to
        qtbot.keyClick(dialog.search.results, Qt.Key.Key_Return)
        assert dialog.isVisible()

    def test_enter_on_a_result_goes_to_its_editor(self, qtbot: QtBot, dialog: PreferencesDialog) -> None:
        dialog.search.field.setText("cores")
        dialog.search.field.setFocus()
        qtbot.keyClick(dialog.search.field, Qt.Key.Key_Down)
        qtbot.keyClick(dialog.search.results, Qt.Key.Key_Enter)
        assert QApplication.focusWidget() is dialog.model.editors["engine.threads"]

    def test_nothing_found_is_said(self, qtbot: QtBot, dialog: PreferencesDialog) -> None:
        dialog.search.field.setText("xyzzy")
        assert "Nothing is called “xyzzy”" in dialog.search.outcome.text()
        assert dialog.search.outcome.isVisible()
        assert not dialog.search.results.isVisible()
        qtbot.keyClick(dialog.search.field, Qt.Key.Key_Return)
        assert dialog.isVisible()

    def test_escape_ends_the_search_first_and_then_the_dialog(
        self, qtbot: QtBot, dialog: PreferencesDialog
    ) -> None:
        dialog.search.field.setText("theme")
        qtbot.keyClick(dialog.search.field, Qt.Key.Key_Down)
        found = dialog.appearance.rows["appearance.theme"]
        dialog.search.field.setFocus()
        qtbot.keyClick(dialog.search.field, Qt.Key.Key_Escape)
        assert dialog.list.isVisible()
        assert found.property("found") is not True
        qtbot.keyClick(dialog.search.field, Qt.Key.Key_Escape)
        assert not dialog.isVisible()

    def test_every_setting_on_the_pages_can_be_found(self, dialog: PreferencesDialog) -> None:
        for page in dialog.pages:
            for key, place in page.places.items():
                dialog.search.field.setText(place.label)
                assert key in [entry.key for entry in dialog.search.hits]

    def test_every_option_that_people_choose_is_on_one_page(self, dialog: PreferencesDialog) -> None:
        keys = [key for page in dialog.pages for key in page.rows]
        assert sorted(keys) == sorted(option.key for option in BY_KEY.values() if option.visible)
