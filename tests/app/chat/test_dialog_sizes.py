"""Dialogs that are open while the zoom changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QFontInfo
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.attachments.form import Attachment
from app.attachments.viewer import AttachmentDialog
from app.dialogs import confirm
from app.errors import UnexpectedError
from app.fault_dialog import FaultDialog
from app.settings import SettingsStore, registry
from app.theme import theme
from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture(autouse=True)
def zoom_of_others() -> Iterator[None]:
    yield
    theme().apply("light")


def question(window: MainWindow) -> QDialog:
    long = "It cannot be brought back, neither here nor on another computer. " * 3
    return confirm(window, "Delete all chats?", long, "Delete", lambda: None)


def opened(dialog: QDialog) -> QDialog:
    dialog.show()
    QTest.qWait(20)
    return dialog


def zoom(settings: SettingsStore, percent: int) -> None:
    settings.set(registry.ZOOM, percent)
    QTest.qWait(50)


def file(window: MainWindow) -> QDialog:
    return AttachmentDialog(Attachment("notes.txt", "Words\n" * 90), window)


def test_a_message_grows_with_its_words_and_back(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    dialog = opened(question(window))
    before = dialog.size()
    zoom(settings, 150)
    fresh = opened(question(window))
    assert dialog.width() >= fresh.width()
    layout = dialog.layout()
    assert layout is not None
    assert dialog.height() == layout.totalHeightForWidth(dialog.width())
    grown = dialog.size()
    for percent, size in ((100, before), (150, grown), (100, before)):
        zoom(settings, percent)
        assert dialog.size() == size
    fresh.close()
    dialog.close()


def test_a_text_that_scrolls_keeps_its_lines(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    dialog = opened(file(window))
    zoom(settings, 125)
    fresh = opened(file(window))
    assert dialog.width() >= fresh.width()
    assert dialog.height() >= fresh.height()
    fresh.close()
    dialog.close()


def test_texts_in_the_fixed_width_font_are_zoomed_where_they_are_open(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    dialog, fault = (
        opened(file(window)),
        opened(FaultDialog(window, UnexpectedError("The window", ValueError()))),
    )
    texts = [part for each in (dialog, fault) for part in each.findChildren(QPlainTextEdit)]
    before = [text.font().pointSizeF() for text in texts]
    zoom(settings, 200)
    assert [text.font().pointSizeF() for text in texts] == pytest.approx([2 * size for size in before])
    assert len(texts) == 2
    assert all(QFontInfo(text.font()).fixedPitch() for text in texts)
    dialog.close()
    fault.close()


def test_no_dialog_grows_beyond_the_screen(qtbot: QtBot, window: MainWindow, settings: SettingsStore) -> None:
    screen = window.screen().availableGeometry()
    dialog = opened(file(window))
    dialog.move(screen.right() - dialog.width(), screen.bottom() - dialog.height())
    zoom(settings, 300)
    assert dialog.frameGeometry().width() == screen.width()
    assert screen.contains(dialog.frameGeometry())
    dialog.close()


def test_a_size_that_the_user_gave_stays_the_measure(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    dialog = opened(file(window))
    zoom(settings, 125)
    dialog.resize(500, 400)
    zoom(settings, 150)
    assert (dialog.width(), dialog.height()) == (600, 480)
    dialog.close()
