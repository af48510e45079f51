"""The whole way with the real program: restore from the settings, closing, starting again, the exchange."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import i18n, main
from app.backup.errors import BackupError
from app.backup.staging import stage
from app.backup.swapping import ask_for_swap
from app.backup.writing import back_up
from app.dialogs import MessageDialog
from app.main import _Ended, _say
from app.paths import settings_path
from app.storage.errors import Notice
from engine.progress import CancelToken, ignore_progress
from tests.app.backup.conftest import chats, write_chat
from tests.app.test_i18n import compiled
from tests.app.test_main import start

RESTORE = """
    from pathlib import Path
    from PySide6.QtCore import QTimer
    from app.dialogs import MessageDialog
    from app.preferences.dialog import PreferencesDialog
    once = Path(sys.argv[1], "once")
    def agree():
        questions = window.findChild(PreferencesDialog).findChildren(MessageDialog)
        questions[0].accept() if questions else QTimer.singleShot(20, agree)
    def ask():
        window.settings_requested.emit()
        window.findChild(PreferencesDialog).data.backup.restore_from(Path(sys.argv[1], "mine.zip"))
        agree()
    if once.exists():
        QTimer.singleShot(0, window.close)
    else:
        once.touch()
        QTimer.singleShot(0, ask)
"""


def test_restores_at_the_next_start_which_comes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path / "other"))
    write_chat("Rome", "When was it founded?")
    folder = tmp_path / "data"
    folder.mkdir()
    back_up(folder / "mine.zip", ignore_progress, CancelToken())
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(folder))
    write_chat("Before", "Do not lose this")
    program = start(folder, RESTORE)
    try:
        assert program.wait(30) == 0
        log = folder / "logs" / "fiddler-chat.log"
        until = time.monotonic() + 30
        while log.read_text("utf-8").count("Fiddler Chat ends") < 2 and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        program.kill()
    assert chats(folder / "chats.sqlite3") == [("Rome", "When was it founded?")]
    [aside] = folder.glob("before-restore-*")
    assert chats(aside / "chats.sqlite3") == [("Before", "Do not lose this")]


@pytest.mark.qt_log_ignore("propagateSizeHints")
def test_what_keeps_a_backup_out_of_place_is_said_and_the_program_ends(
    qtbot: QtBot, qapp: QApplication
) -> None:
    told: list[str] = []

    def close() -> None:
        [dialog] = [each for each in qapp.topLevelWidgets() if isinstance(each, MessageDialog)]
        told.append(dialog.accessibleName())
        dialog.close()

    # With its last window closed, too, the application would be told twice to quit, and the second time would
    # end the event loops of later tests.
    qapp.setQuitOnLastWindowClosed(False)
    QTimer.singleShot(0, close)
    try:
        assert _say(qapp, BackupError("The backup could not be put in place.")) == 1
    finally:
        qapp.setQuitOnLastWindowClosed(True)
    assert told == ["The backup could not be put in place."]


def test_what_was_restored_is_told_in_the_users_language(
    filled: Path, backup: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled / "translations" / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "fiddler-chat.mo").write_bytes(compiled({"The backup has been restored.": "Zurückgeholt."}))
    settings_path().write_text('[appearance]\nlanguage = "de"\n', "utf-8")
    ask_for_swap(filled, stage(backup, filled, ignore_progress, CancelToken()).created, datetime.now())
    told: list[Notice] = []

    def run(*given: object) -> _Ended:
        told.extend(each for each in given if isinstance(each, Notice))
        return _Ended(0, hangs=False, again=False)

    for name in ("_catalogue", "_language"):
        monkeypatch.setattr(i18n, name, getattr(i18n, name))  # is put back
    monkeypatch.setattr(main, "_application", lambda: qapp)
    monkeypatch.setattr(main, "start_logging", lambda: None)
    monkeypatch.setattr(main, "_run", run)
    assert main.main([]) == 0
    assert [(notice.what, notice.good) for notice in told] == [("Zurückgeholt.", True)]
