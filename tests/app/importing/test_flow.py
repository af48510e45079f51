import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.composer.edit import MessageEdit
from app.dialogs import MessageDialog
from app.importing.drop import DropWindow
from app.importing.flow import ImportFlow
from app.settings import SettingsStore
from app.storage import ChatStore, Summary
from app.storage.thread import StorageThread
from tests.app.importing.chatgpt_files import conversation, simple

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def storage(qtbot: QtBot, tmp_path: Path) -> Iterator[StorageThread]:
    thread = StorageThread(tmp_path / "chats.sqlite3")
    thread.start()
    yield thread
    thread.close()
    thread.deleteLater()


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def flow(window: QWidget, storage: StorageThread) -> ImportFlow:
    return ImportFlow(window, storage, SettingsStore(None))


@pytest.fixture
def two_chats(tmp_path: Path) -> Path:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([simple(), simple("And Paris?", title="Paris", create_time=5)]), "utf-8")
    return path


def titles(qtbot: QtBot, storage: StorageThread) -> list[str]:
    found: list[list[Summary]] = []
    storage.run(ChatStore.conversations).then(found.append)
    qtbot.waitUntil(lambda: bool(found), timeout=5000)
    return sorted(line.conversation.title for line in found[0])


def dialog_of(qtbot: QtBot, window: QWidget) -> MessageDialog:
    qtbot.waitUntil(lambda: window.findChild(MessageDialog) is not None, timeout=5000)
    return cast(MessageDialog, window.findChild(MessageDialog))


def press(dialog: MessageDialog, text: str) -> None:
    (button,) = [button for button in dialog.findChildren(QPushButton) if button.text() == text]
    button.click()


def take(qtbot: QtBot, flow: ImportFlow, path: Path) -> None:
    with qtbot.waitSignal(flow.told):
        flow.import_files([path])


def test_everything_that_was_taken_is_one_sentence(
    qtbot: QtBot, flow: ImportFlow, storage: StorageThread, two_chats: Path
) -> None:
    added: list[tuple[int, ...]] = []
    flow.imported.connect(added.append)
    with qtbot.waitSignal(flow.told) as told:
        flow.import_files([two_chats])
    assert told.args == ["Imported: 2 chats, 4 messages."]
    assert [len(chats) for chats in added] == [2]
    assert titles(qtbot, storage) == ["Paris", "Rome"]


def test_nothing_is_imported_twice_without_asking(
    qtbot: QtBot, flow: ImportFlow, window: QWidget, storage: StorageThread, two_chats: Path
) -> None:
    take(qtbot, flow, two_chats)
    flow.import_files([two_chats])
    dialog = dialog_of(qtbot, window)
    assert dialog.accessibleName() == "These 2 chats are here already."
    dialog.reject()
    assert titles(qtbot, storage) == ["Paris", "Rome"]


def test_they_are_imported_again_where_the_user_says_so(
    qtbot: QtBot, flow: ImportFlow, window: QWidget, storage: StorageThread, two_chats: Path
) -> None:
    take(qtbot, flow, two_chats)
    flow.import_files([two_chats])
    with qtbot.waitSignal(flow.told):
        press(dialog_of(qtbot, window), "Import again")
    assert titles(qtbot, storage) == ["Paris", "Paris", "Rome", "Rome"]


def test_only_the_others_are_imported_and_the_report_says_so(
    qtbot: QtBot, flow: ImportFlow, window: QWidget, storage: StorageThread, two_chats: Path, tmp_path: Path
) -> None:
    take(qtbot, flow, two_chats)
    more = [
        *json.loads(two_chats.read_text("utf-8")),
        simple("Oslo?", title="Oslo"),
        conversation(title="No"),
    ]
    (tmp_path / "more.json").write_text(json.dumps(more), "utf-8")
    flow.import_files([tmp_path / "more.json"])
    question = dialog_of(qtbot, window)
    assert question.accessibleName() == "2 of the 3 chats are here already."
    with qtbot.waitSignal(flow.imported):
        press(question, "Import only the others")
    qtbot.waitUntil(lambda: window.findChild(MessageDialog) not in (None, question), timeout=5000)
    report = dialog_of(qtbot, window)
    assert report.accessibleName() == "Imported: 1 chat, 2 messages."
    assert "2 chats were here already" in report.accessibleDescription()
    press(report, "Copy details")
    assert "No: it holds no written messages" in QGuiApplication.clipboard().text()
    press(report, "Close")
    assert titles(qtbot, storage) == ["Oslo", "Paris", "Rome"]


def test_a_foreign_file_changes_nothing_and_says_why(
    qtbot: QtBot, flow: ImportFlow, window: QWidget, storage: StorageThread, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text("hello")
    flow.import_files([tmp_path / "a.json"])
    dialog = dialog_of(qtbot, window)
    assert "unchanged" in dialog.accessibleName()
    dialog.reject()
    assert titles(qtbot, storage) == []


def test_the_file_dialog_takes_several_files(qtbot: QtBot, flow: ImportFlow, two_chats: Path) -> None:
    dialog = flow.ask()
    assert dialog.fileMode() is QFileDialog.FileMode.ExistingFiles
    with qtbot.waitSignal(flow.told):
        dialog.filesSelected.emit([str(two_chats)])
    dialog.reject()


def test_the_message_field_leaves_such_files_to_the_window(qtbot: QtBot) -> None:
    edit = MessageEdit()
    qtbot.addWidget(edit)
    data = QMimeData()
    data.setText("words")
    place, actions = QPoint(5, 5), Qt.DropAction.CopyAction
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier

    def enters() -> bool:
        enter = QDragEnterEvent(place, actions, data, buttons, keys)
        enter.ignore()
        edit.dragEnterEvent(enter)
        return enter.isAccepted()

    assert enters()
    data.setUrls([QUrl.fromLocalFile("/x/a.json")])
    assert not enters()


def test_files_are_dropped_on_the_window(qtbot: QtBot, tmp_path: Path) -> None:
    window = DropWindow()
    qtbot.addWidget(window)
    dropped: list[list[Path]] = []
    window.files_dropped.connect(dropped.append)

    def drop(*urls: QUrl) -> bool:
        data = QMimeData()
        data.setUrls(list(urls))
        place, actions = QPoint(5, 5), Qt.DropAction.CopyAction
        buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        enter = QDragEnterEvent(place, actions, data, buttons, keys)
        enter.ignore()
        window.dragEnterEvent(enter)
        window.dropEvent(QDropEvent(place.toPointF(), actions, data, buttons, keys))
        return enter.isAccepted()

    chats, archive = QUrl.fromLocalFile("/x/a.json"), QUrl.fromLocalFile("/x/b.ZIP")
    assert drop(chats, archive)
    assert dropped == [[Path("/x/a.json"), Path("/x/b.ZIP")]]
    assert drop(QUrl.fromLocalFile("/x/a.txt"))  # to be attached
    assert not drop(chats, QUrl("https://example.org/a.json"))
    assert not drop(QUrl("https://example.org/a.json"))
    assert not drop()
    assert len(dropped) == 2
