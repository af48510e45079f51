"""Files in the composer and in the chat: pasted, dropped, chosen, removed, sent, edited; long texts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.attachments.chips import ChipRow
from app.attachments.form import Attachment, compose, parse
from app.attachments.reading import ReadFiles, read_files
from app.attachments.viewer import AttachmentDialog
from app.chat.editor import MessageEditor
from app.chat.message import UserMessage
from app.composer.composer import Composer
from app.composer.edit import HUGE_PASTE, LONG_PASTE
from app.paths import database_path
from app.storage import open_store
from app.window import MainWindow
from engine.params import Message
from tests.app.chat.composing import NOTE, ask, attach, files, paste, press, words
from tests.app.fakes import ScriptedFactory

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def test_pasted_files_become_chips_and_are_sent_with_their_names(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, tmp_path: Path
) -> None:
    composer = window.page.composer
    attach(qtbot, window, tmp_path / "note.txt", "In 753 BC.\n")
    assert composer.text == ""  # not the file's address
    (chip,) = composer.files.row.chips
    qtbot.waitUntil(lambda: "tokens" in chip.open.text(), timeout=5000)
    assert "note.txt" in chip.open.accessibleName()
    ask(qtbot, window, "When?")
    message = compose([NOTE], "When?")
    assert factory.engine.conversations == [[Message("user", message)]]
    assert composer.content == ""
    assert composer.files.isHidden()
    shown = window.page.view.views[0]
    assert isinstance(shown, UserMessage)
    assert shown.content() == message
    assert window.windowTitle().startswith("When?")


def test_files_stay_with_the_draft_the_message_and_its_versions(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, tmp_path: Path
) -> None:
    composer = window.page.composer
    ask(qtbot, window, "First")
    assert window.session.conversation is not None
    chat = window.session.conversation.id
    attach(qtbot, window, tmp_path / "note.txt", "In 753 BC.")
    window.commands.new_chat()
    assert composer.content == ""
    window.session.open(chat)
    qtbot.waitUntil(lambda: composer.content == compose([NOTE], ""), timeout=5000)
    press(qtbot, window)  # a file alone is a message
    qtbot.waitUntil(lambda: len(factory.engine.conversations) == 2, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    window.session.regenerate()
    qtbot.waitUntil(lambda: len(factory.engine.conversations) == 3, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    assert factory.engine.conversations[2] == factory.engine.conversations[1]
    question = window.page.view.views[2]
    assert isinstance(question, UserMessage)
    question.begin_edit()
    assert question.editor is not None
    assert question.editor.files.files == (NOTE,)
    assert question.editor.edit.toPlainText() == ""
    qtbot.keyClicks(question.editor.edit, "When?")
    question.editor.save_button.click()
    qtbot.waitUntil(lambda: len(factory.engine.conversations) == 4, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    assert factory.engine.conversations[3][-1] == Message("user", compose([NOTE], "When?"))


@pytest.mark.parametrize("width", [800, 1000])
def test_a_bubble_has_room_for_all_its_files(qtbot: QtBot, window: MainWindow, width: int) -> None:
    window.resize(width, 640)
    table = Attachment("measurements of the garden 2026.csv", "x\n" * 90)
    several = [table, NOTE, Attachment("plot.py", "print()\n" * 20)]
    window.session.send(compose(several, "Which day was the warmest, and what does plot.py print?"))
    qtbot.waitUntil(lambda: len(window.session.messages) == 2 and not window.session.busy, timeout=5000)
    row = window.page.view.views[0].findChild(ChipRow)
    assert isinstance(row, ChipRow)
    qtbot.waitUntil(lambda: all(row.rect().contains(chip.geometry()) for chip in row.chips), timeout=2000)
    assert row.chips[0].geometry().bottom() < row.chips[-1].geometry().top()  # in lines


def test_an_answer_is_edited_as_text_alone(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, tmp_path: Path
) -> None:
    factory.script = [compose([NOTE], "That is all.")]
    ask(qtbot, window, "First")
    answer = window.page.view.views[1]
    answer.begin_edit()
    assert answer.editor is not None
    assert answer.editor.edit.toPlainText() == factory.script[0]
    assert answer.editor.files.files == ()
    QGuiApplication.clipboard().setMimeData(words("x" * (HUGE_PASTE + 1)))
    answer.editor.edit.paste()
    assert len(answer.editor.edit.toPlainText()) > HUGE_PASTE
    answer.editor.cancelled.emit()


@pytest.mark.parametrize("edited", [False, True])
def test_nothing_is_sent_while_a_file_is_being_read(
    qtbot: QtBot,
    window: MainWindow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    factory: ScriptedFactory,
    edited: bool,
) -> None:
    ask(qtbot, window, "First")
    gate = threading.Event()

    def slowly(*arguments: Any, **options: Any) -> ReadFiles:
        gate.wait(10)
        return read_files(*arguments, **options)

    monkeypatch.setattr("app.attachments.reader.read_files", slowly)
    (tmp_path / "a.txt").write_text("a")
    part: Composer | MessageEditor = window.page.composer
    if edited:
        question = window.page.view.views[0]
        question.begin_edit()
        assert question.editor is not None
        part = question.editor
    part.edit.insertPlainText("Second")
    part.files.add_paths([tmp_path / "a.txt"])
    qtbot.keyClick(part.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert not window.session.busy
    assert "still being read" in part.files.notice.text
    gate.set()
    qtbot.waitUntil(lambda: len(part.files.files) == 1, timeout=5000)
    assert part.files.notice.text == ""
    qtbot.keyClick(part.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: len(factory.engine.conversations) == 2, timeout=5000)
    assert "Attached file: a.txt" in factory.engine.conversations[-1][-1].content
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)


def test_what_was_not_attached_stays_told_while_more_is_read(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    (tmp_path / "good.txt").write_text("good")
    files = window.page.composer.files
    files.add_paths([tmp_path / "missing.txt"])
    files.add_paths([tmp_path / "good.txt"])
    qtbot.waitUntil(lambda: len(files.files) == 1, timeout=5000)
    assert "missing.txt" in files.notice.text
    files.add_paths([tmp_path / "good.txt"])
    qtbot.waitUntil(lambda: not files.reading, timeout=5000)
    assert files.notice.text == ""


def test_chips_are_removed_by_the_keyboard(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    composer = window.page.composer
    window.activateWindow()
    attach(qtbot, window, tmp_path / "a.txt", "a")
    attach(qtbot, window, tmp_path / "b.txt", "b")
    first = composer.files.row.chips[0]
    first.open.setFocus()
    qtbot.keyClick(first.open, Qt.Key.Key_Delete)
    (left,) = composer.files.row.chips
    assert left.file.name == "b.txt"
    assert left.open.hasFocus()
    left.remove.setFocus()
    qtbot.keyClick(left.remove, Qt.Key.Key_Space)
    assert composer.files.files == ()
    assert composer.edit.hasFocus()


def test_a_chip_shows_the_text(qtbot: QtBot, window: MainWindow) -> None:
    window.page.composer.set_content(compose([NOTE], ""))
    window.page.composer.files.row.chips[0].open.click()
    dialog = window.findChild(AttachmentDialog)
    assert dialog is not None
    assert dialog.text.toPlainText() == NOTE.content
    dialog.close()


def test_files_that_are_no_texts_are_told_of(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    composer = window.page.composer
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n\x00")
    (tmp_path / "good.txt").write_text("good")
    paste(window, files(tmp_path / "paper.pdf", tmp_path / "good.txt"))
    qtbot.waitUntil(lambda: len(composer.files.files) == 1, timeout=5000)
    assert "paper.pdf" in composer.files.notice.text
    assert "PDF" in composer.files.notice.text
    composer.set_content("")
    assert composer.files.isHidden()


def test_dropped_chats_are_imported_and_other_files_attached(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, chats = tmp_path / "data.json", tmp_path / "chats.json"
    data.write_text('{"rows": [1, 2]}')
    chats.write_text('[{"mapping": {}}]')
    with qtbot.waitSignal(window.page.writing.chats_found) as found:
        window.files_dropped.emit([data, chats])
    assert found.args == [[chats]]
    assert [file.name for file in window.page.composer.files.files] == ["data.json"]
    qtbot.waitUntil(lambda: window.findChild(AttachmentDialog) is None, timeout=5000)


def test_files_are_chosen_from_the_menu(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("In 753 BC.")
    window.menus.actions["attach"].trigger()
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.filesSelected.emit([str(path)])
    qtbot.waitUntil(lambda: window.page.composer.files.files == (NOTE,), timeout=5000)
    dialog.reject()


def test_a_long_text_that_is_pasted_can_become_a_file(qtbot: QtBot, window: MainWindow) -> None:
    composer = window.page.composer
    qtbot.keyClicks(composer.edit, "before ")
    paste(window, words("short"))
    assert composer.offer.isHidden()
    long = "word\n" * (LONG_PASTE // 5 + 1)
    paste(window, words(long))
    assert composer.offer.isVisible()
    qtbot.keyClicks(composer.edit, "after")
    composer.offer.button.click()
    assert composer.offer.isHidden()
    assert composer.text == "before shortafter"
    assert composer.files.files == (Attachment("Pasted text.txt", long.rstrip()),)
    paste(window, words(long + "!"))
    composer.offer.close_button.click()
    assert composer.text.endswith("!")
    composer.set_text("")


def test_a_huge_text_is_attached_at_once(qtbot: QtBot, window: MainWindow) -> None:
    composer = window.page.composer
    paste(window, words("line\r\n" * (HUGE_PASTE // 6 + 1)))
    assert composer.text == ""
    (file,) = composer.files.files
    assert file.content.startswith("line\nline\n")
    assert file.lines == HUGE_PASTE // 6 + 1


def test_many_files_take_three_lines_at_most(qtbot: QtBot, window: MainWindow) -> None:
    composer = window.page.composer
    several = [Attachment(f"a file with a rather long name {number}.txt", "x") for number in range(30)]
    composer.set_content(compose(several, ""))
    qtbot.waitUntil(lambda: composer.files.height() > 0 and composer.isVisible(), timeout=5000)
    chip = composer.files.row.chips[0]
    assert composer.files.height() <= 4 * chip.sizeHint().height()
    assert window.height() == 800
    composer.set_content("")


def test_a_draft_with_files_is_on_the_disk(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    attach(qtbot, window, tmp_path / "note.txt", "In 753 BC.")
    qtbot.keyClicks(window.page.composer.edit, "When?")
    window.close()
    opened = open_store(database_path())
    assert parse(opened.store.draft(None)).attachments == (NOTE,)
    opened.store.close()


def test_copying_a_question_copies_its_files_only_on_request(qtbot: QtBot, window: MainWindow) -> None:
    whole = compose([NOTE], "When?")
    window.session.send(whole)
    qtbot.waitUntil(lambda: len(window.page.view.views) == 2 and not window.session.busy, timeout=5000)
    tools = window.page.view.views[0].tools
    tools.copy.click()
    assert QGuiApplication.clipboard().text() == "When?"
    menu = tools.menu()
    next(action for action in menu.actions() if "with its files" in action.text()).trigger()
    menu.deleteLater()
    assert QGuiApplication.clipboard().text() == whole
