"""Settings get their defaults again: one, a page, all; what they were can be had back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.settings import SettingsStore, registry

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from app.preferences.dialog import PreferencesDialog


def test_one_setting_is_reset_by_its_button_and_back_by_undo(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore
) -> None:
    dialog.show_page(dialog.model)
    row = dialog.model.rows["engine.threads"]
    assert not row.reset.isVisible()
    settings.set(registry.THREADS, 3)
    assert row.reset.isVisible()
    assert row.reset.accessibleName() == "Reset “CPU threads”"
    row.reset.setFocus()
    qtbot.keyClick(row.reset, Qt.Key.Key_Space)
    assert settings.get(registry.THREADS) == 0
    assert QApplication.focusWidget() is row.editor
    assert dialog.undo.isVisible()
    dialog.undo.button.click()
    assert settings.get(registry.THREADS) == 3
    assert row.reset.isVisible()


def test_a_page_is_reset_and_the_others_are_not(dialog: PreferencesDialog, settings: SettingsStore) -> None:
    dialog.show_page(dialog.model)
    assert not dialog.reset_page.isEnabled()
    settings.set(registry.THREADS, 5)
    settings.set(registry.CONTEXT_LENGTH, 700)
    settings.set(registry.THEME, "dark")
    assert dialog.reset_page.isEnabled()
    dialog.reset_page.click()
    assert (settings.get(registry.THREADS), settings.get(registry.CONTEXT_LENGTH)) == (0, 0)
    assert settings.get(registry.THEME) == "dark"
    assert not dialog.reset_page.isEnabled()
    dialog.undo.button.click()
    assert (settings.get(registry.THREADS), settings.get(registry.CONTEXT_LENGTH)) == (5, 700)


def test_a_reset_that_changes_nothing_offers_nothing(dialog: PreferencesDialog) -> None:
    dialog.reset((registry.THEME,))
    assert not dialog.undo.isVisible()
