"""The letters that press a button together with Alt: with one twice, none of the two is pressed."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication

from app.preferences.dialog import PreferencesDialog
from app.shortcuts.shortcuts import mnemonic

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def test_no_letter_of_a_page_belongs_to_two_buttons(dialog: PreferencesDialog) -> None:
    for page in dialog.pages:
        dialog.show_page(page)
        QApplication.processEvents()
        buttons = [button for button in dialog.findChildren(QAbstractButton) if button.isVisible()]
        letters = Counter(mnemonic(button.text()).lower() for button in buttons)
        del letters[""]
        assert [letter for letter, count in letters.items() if count > 1] == [], page.name
        assert letters or page.name in ("Chats", "Appearance", "Desktop"), page.name
