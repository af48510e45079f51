"""The data page: backing up and restoring through it, and the diagnostic report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtGui import QGuiApplication

from app.backup.swapping import swap_if_asked
from app.details import DetailsText
from app.dialogs import MessageDialog
from app.paths import database_path
from app.settings import SettingsStore, registry
from app.storage import open_store
from app.widgets.problem import ProblemText

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from app.preferences.dialog import PreferencesDialog

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark


@pytest.fixture
def chat() -> str:
    store = open_store(database_path()).store
    store.add_message(store.create_conversation("Rome").id, "user", "When was it founded?")
    store.close()
    return "Rome"


def message(qtbot: QtBot, dialog: PreferencesDialog) -> MessageDialog:
    qtbot.waitUntil(lambda: bool(dialog.findChildren(MessageDialog)))
    return dialog.findChildren(MessageDialog)[0]


def test_backs_up_says_so_and_restores_after_asking(
    qtbot: QtBot,
    dialog: PreferencesDialog,
    chat: str,
    tmp_path: Path,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr("app.preferences.backup_card.announce", lambda _owner, text: said.append(text))
    dialog.show_page(dialog.data)
    card = dialog.data.backup
    card.back_up_to(tmp_path / "b.zip")
    qtbot.waitUntil(lambda: "1 chat" in card.state.text())
    assert said == [card.state.text()]
    card.restore_from(tmp_path / "b.zip")
    question = message(qtbot, dialog)
    assert not (data_dir / "restore.json").exists()  # not before the answer
    with qtbot.waitSignal(dialog.restart_requested):
        question.accept()
    notice = swap_if_asked(data_dir)
    assert notice is not None
    assert "restored" in notice.what


def test_thinking_better_of_it_leaves_nothing(
    qtbot: QtBot, dialog: PreferencesDialog, chat: str, tmp_path: Path, data_dir: Path
) -> None:
    card = dialog.data.backup
    card.back_up_to(tmp_path / "b.zip")
    qtbot.waitUntil(lambda: "1 chat" in card.state.text())
    card.restore_from(tmp_path / "b.zip")
    message(qtbot, dialog).reject()
    qtbot.waitUntil(lambda: not (data_dir / "restore").exists())
    assert swap_if_asked(data_dir) is None


def test_a_foreign_file_is_refused_with_a_reason(
    qtbot: QtBot, dialog: PreferencesDialog, tmp_path: Path
) -> None:
    (tmp_path / "photo.zip").write_bytes(b"no zip")
    dialog.data.backup.restore_from(tmp_path / "photo.zip")
    [text] = message(qtbot, dialog).findChildren(ProblemText)
    assert text.what.text == "This file is not a backup of Fiddler Chat."
    message(qtbot, dialog).close()


def test_the_report_is_copied_and_shown(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, chat: str
) -> None:
    settings.set(registry.THREADS, 3)
    dialog.show_page(dialog.data)
    dialog.data.support.copy.click()
    shown = message(qtbot, dialog)
    copied = QGuiApplication.clipboard().text()
    assert "engine.threads = 3" in copied
    assert "Rome" not in copied
    assert dialog.data.support.copy.isEnabled()
    details = shown.findChild(DetailsText)
    assert details is not None
    qtbot.waitUntil(lambda: details.verticalScrollBar().maximum() > 0)
    assert details.horizontalScrollBar().maximum() == 0  # long sentences are wrapped
    right = details.mapTo(shown, details.rect().topRight()).x()
    assert right < shown.contentsRect().right() - shown.layout().contentsMargins().right() + 1
    shown.reject()
