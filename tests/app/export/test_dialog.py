from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.export import KINDS, PDF, ExportOptions
from app.export.dialog import ExportDialog
from app.export.job import ExportJob
from app.settings import SettingsStore, registry
from app.storage import Conversation

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def settings(tmp_path: Path) -> SettingsStore:
    store = SettingsStore(None)
    store.set(registry.EXPORT_FOLDER, str(tmp_path))
    return store


@pytest.fixture
def chats(conversation: Conversation) -> list[Conversation]:
    return [replace(conversation, id=number, title=title) for number, title in ((3, "Rome"), (4, "Paris"))]


@pytest.fixture
def dialog(qtbot: QtBot, settings: SettingsStore, chats: list[Conversation]) -> Iterator[ExportDialog]:
    made = ExportDialog(settings, chats[0])
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(made)
    made.set_chats(chats)
    made.show()
    yield made
    made.close()


def named(qtbot: QtBot, dialog: ExportDialog, name: str) -> None:
    qtbot.waitUntil(lambda: dialog.name.text() == name and dialog.export.isEnabled(), timeout=5000)


def test_the_name_follows_the_choices(qtbot: QtBot, dialog: ExportDialog, tmp_path: Path) -> None:
    named(qtbot, dialog, "Rome.md")
    assert str(tmp_path) in dialog.folder.text()
    dialog.format.setCurrentIndex(KINDS.index(PDF))
    named(qtbot, dialog, "Rome.pdf")
    dialog.all_chats.setChecked(True)
    qtbot.waitUntil(lambda: dialog.name.text().endswith(".zip"), timeout=5000)
    assert "2 chats" in dialog.folder.text()
    (tmp_path / "Rome.pdf").touch()
    dialog.this_chat.setChecked(True)
    named(qtbot, dialog, "Rome (2).pdf")


def test_chats_are_chosen_from_a_list(qtbot: QtBot, dialog: ExportDialog) -> None:
    assert not dialog.chooser.isVisible()
    dialog.some_chats.setChecked(True)
    assert dialog.chooser.isVisible()
    named(qtbot, dialog, "Rome.md")  # the chat that is shown is ticked
    dialog.chooser.filter.setText("PAR")
    dialog.chooser.tick.click()
    assert dialog.chooser.chosen() == (3, 4)
    assert dialog.job().archive
    dialog.chooser.filter.clear()
    dialog.chooser.clear.click()
    qtbot.waitUntil(lambda: "at least one" in dialog.name.text(), timeout=5000)
    assert not dialog.export.isEnabled()


def test_the_job_says_what_was_chosen(qtbot: QtBot, dialog: ExportDialog, tmp_path: Path) -> None:
    jobs: list[ExportJob] = []
    dialog.export_requested.connect(jobs.append)
    dialog.system_prompt.setChecked(False)
    dialog.branches.setChecked(True)
    dialog.format.setCurrentIndex(KINDS.index(PDF))
    named(qtbot, dialog, "Rome.pdf")
    dialog.export.click()
    options = ExportOptions(system_prompt=False, branches=True)
    assert jobs == [ExportJob((3,), tmp_path / "Rome.pdf", PDF, options)]
    assert not dialog.isVisible()


def test_a_name_that_the_user_gave_stays(qtbot: QtBot, dialog: ExportDialog, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.md").touch()
    dialog.choose_path(tmp_path / "sub" / "mine.md")
    named(qtbot, dialog, "mine.md")
    assert dialog.job().replace  # the file dialog has asked
    dialog.format.setCurrentIndex(KINDS.index(PDF))
    named(qtbot, dialog, "Rome.pdf")
    assert dialog.job().path == tmp_path / "sub" / "Rome.pdf"
    assert not dialog.job().replace


def test_the_file_dialog_offers_the_format(qtbot: QtBot, dialog: ExportDialog) -> None:
    from PySide6.QtWidgets import QFileDialog

    named(qtbot, dialog, "Rome.md")
    dialog.change.click()
    asked = dialog.findChild(QFileDialog)
    assert asked is not None
    assert asked.nameFilters() == ["Markdown (*.md)"]
    asked.reject()


def test_without_a_chat_on_the_screen_all_are_offered(
    qtbot: QtBot, settings: SettingsStore, chats: list[Conversation]
) -> None:
    made = ExportDialog(settings, None)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(made)
    assert not made.this_chat.isEnabled()
    qtbot.waitUntil(lambda: "at least one" in made.name.text(), timeout=5000)  # the list is still read
    made.set_chats(chats)
    assert made.job().chats == (3, 4)
    qtbot.waitUntil(lambda: made.export.isEnabled(), timeout=5000)


def test_every_control_has_a_name_and_the_keyboard_reaches_it(qtbot: QtBot, dialog: ExportDialog) -> None:
    dialog.some_chats.setChecked(True)
    dialog.this_chat.setFocus()
    seen = set()
    for _ in range(30):
        focused = dialog.focusWidget()
        assert focused is not None
        seen.add(focused)
        qtbot.keyClick(focused, Qt.Key.Key_Tab)
    wanted = {
        dialog.chooser.filter,
        dialog.chooser.list,
        dialog.format,
        dialog.system_prompt,
        dialog.branches,
        dialog.change,
        dialog.cancel,
    }
    assert wanted <= seen
    assert all(widget.accessibleName() or getattr(widget, "text", lambda: "")() for widget in wanted)
