"""What the tests of the composer do in the window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.attachments.form import Attachment
from app.window import MainWindow

NOTE = Attachment("note.txt", "In 753 BC.")


def press(qtbot: QtBot, window: MainWindow, key: Qt.Key = Qt.Key.Key_Return) -> None:
    qtbot.keyClick(window.page.composer.edit, key)


def ask(qtbot: QtBot, window: MainWindow, text: str) -> None:
    qtbot.keyClicks(window.page.composer.edit, text)
    press(qtbot, window)
    qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)


def paste(window: MainWindow, data: QMimeData) -> None:
    QGuiApplication.clipboard().setMimeData(data)
    window.page.composer.edit.paste()


def files(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def words(text: str) -> QMimeData:
    data = QMimeData()
    data.setText(text)
    return data


def attach(qtbot: QtBot, window: MainWindow, path: Path, text: str) -> None:
    path.write_text(text)
    before = len(window.page.composer.files.files)
    paste(window, files(path))
    qtbot.waitUntil(lambda: len(window.page.composer.files.files) == before + 1, timeout=5000)
