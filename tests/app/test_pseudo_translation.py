"""With a made-up language that brackets every text, whatever the user reads must be in brackets.

What is not in brackets never went through `tr`. `test_i18n` has a catalogue's file found and used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QThreadPool
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QPlainTextEdit, QWidget

from app import i18n
from app.paths import database_path
from app.preferences.dialog import PreferencesDialog
from app.settings import SettingsStore, registry
from app.storage.thread import StorageThread
from app.window import MainWindow
from app.worker import EngineWorker
from engine.params import GenerationParams
from tests.app.fakes import make_status
from tests.app.wizard_fakes import ScriptedKnowledge

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

_WORD = re.compile(r"[^\W\d_]{3,}")


class Brackets(i18n.gettext.NullTranslations):
    """Every text in brackets, as a translation of it would be another text."""

    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧"

    def ngettext(self, one: str, many: str, count: int) -> str:
        return f"⟦{one if count == 1 else many}⟧"


@pytest.fixture(autouse=True)
def brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "_catalogue", Brackets())


@pytest.fixture
def settings(tmp_path: Path) -> SettingsStore:
    store = SettingsStore(None)
    store.set(registry.WIZARD_COMPLETED, True)
    store.set(registry.MODEL_PATH, str(tmp_path))
    return store


@pytest.fixture
def window(qtbot: QtBot, worker: EngineWorker, settings: SettingsStore) -> Iterator[MainWindow]:
    storage = StorageThread(database_path())
    made = MainWindow(storage, worker, settings)
    qtbot.addWidget(made)
    yield made
    storage.close()


def texts(root: QWidget) -> Iterator[tuple[QWidget, str]]:
    """Everything that is written on the widgets below `root`, or said by a screen reader."""
    for widget in (root, *root.findChildren(QWidget)):
        found = [widget.toolTip(), widget.accessibleName(), widget.windowTitle()]
        if isinstance(widget, QLabel | QAbstractButton):
            found.append(widget.text())
        if isinstance(widget, QLineEdit | QPlainTextEdit):
            found.append(widget.placeholderText())
        if isinstance(widget, QComboBox):
            found += [widget.itemText(row) for row in range(widget.count())]
        found += [action.text() for action in widget.actions()]
        for text in found:
            yield widget, text


def bare(root: QWidget, data: frozenset[str], folder: Path) -> list[str]:
    """The texts with words that did not go through the translation; `data` and paths are none of ours."""
    out = set()
    for widget, text in texts(root):
        ours = "⟦" not in text and text not in data and not text.startswith(str(folder))
        if ours and _WORD.search(text):
            out.add(f"{type(widget).__name__}: {text!r}")
    return sorted(out)


def test_every_text_of_the_window_goes_through_the_translation(window: MainWindow, tmp_path: Path) -> None:
    assert bare(window, frozenset(), tmp_path) == []
    assert sum("⟦" in text for _, text in texts(window)) > 50


def test_every_text_of_the_settings_goes_through_the_translation(
    qtbot: QtBot,
    window: MainWindow,
    worker: EngineWorker,
    settings: SettingsStore,
    tmp_path: Path,
) -> None:
    dialog = PreferencesDialog(
        settings,
        window.presets,
        worker,
        make_status(),
        GenerationParams(),
        knowledge=ScriptedKnowledge(),
        shortcuts=window.shortcuts,
    )
    qtbot.addWidget(dialog)
    fonts = dialog.appearance.editors["appearance.font_family"]
    assert isinstance(fonts, QComboBox)
    names = {fonts.itemText(row) for row in range(1, fonts.count())}
    found = bare(dialog, frozenset(names | {"Starter model", "English"}), tmp_path)
    dialog.reject()
    QThreadPool.globalInstance().waitForDone(5000)
    assert found == []
