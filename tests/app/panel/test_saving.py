from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.dialogs import MessageDialog
from app.panel.csv_table import to_csv
from app.panel.history import ChatFigures
from app.panel.saving import PanelFiles
from tests.app.panel.rows import answer_row

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
CHAT = ChatFigures().with_rows([answer_row(1), answer_row(2)])


@pytest.fixture
def owner(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.show()
    return made


def test_the_history_is_written_as_a_table(qtbot: QtBot, owner: QWidget, tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    PanelFiles(owner).save_table(path, CHAT)
    qtbot.waitUntil(path.exists)
    assert path.read_bytes().decode() == to_csv(CHAT)


def test_the_panel_is_written_as_a_picture(qtbot: QtBot, owner: QWidget, tmp_path: Path) -> None:
    path = tmp_path / "panel.png"
    owner.resize(120, 80)
    PanelFiles(owner).save_picture(path, owner.grab().toImage())
    qtbot.waitUntil(path.exists)
    assert QImage(str(path)).size() == owner.size()


def test_the_dialog_asks_for_a_file_and_writes_it(qtbot: QtBot, owner: QWidget, tmp_path: Path) -> None:
    PanelFiles(owner).ask_table(CHAT)
    (dialog,) = owner.findChildren(QFileDialog)
    assert dialog.defaultSuffix() == "csv"
    dialog.fileSelected.emit(str(tmp_path / "chosen.csv"))
    dialog.reject()
    qtbot.waitUntil((tmp_path / "chosen.csv").exists)


def test_what_cannot_be_written_is_said(qtbot: QtBot, owner: QWidget, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    PanelFiles(owner).save_table(tmp_path / "file" / "history.csv", CHAT)
    qtbot.waitUntil(lambda: bool(owner.findChildren(MessageDialog)))
    owner.findChildren(MessageDialog)[0].reject()
