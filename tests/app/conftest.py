"""Shared by the tests of the window: no display needed, Qt's warnings fail, the user's data is safe."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before anything imports Qt

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.worker import EngineWorker
from engine.options import LoadOptions
from tests.app.fakes import ScriptedFactory

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fail a test that makes Qt warn. Not in the ini file: a machine may lack pytest-qt."""
    if not config.pluginmanager.hasplugin("pytest-qt"):
        return
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh data folder for each test, so that none sees or touches the user's chats and settings."""
    folder = tmp_path / "data"
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def frozen_libraries() -> None:
    """What is there before the first test is never garbage; with it, each collection takes 0.1 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def garbage_stays_in_this_thread(frozen_libraries: None) -> Iterator[None]:
    """As in the program (`app.garbage`): no other thread destroys what a test leaves of Qt."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture
def factory() -> ScriptedFactory:
    """The scripted engine's controls."""
    return ScriptedFactory()


@pytest.fixture
def worker(qtbot: "QtBot", factory: ScriptedFactory) -> Iterator[EngineWorker]:
    """An engine worker with a scripted engine; nothing is loaded yet."""
    engine_worker = EngineWorker(factory)
    yield engine_worker
    assert engine_worker.shutdown(5000)
    engine_worker.deleteLater()


@pytest.fixture
def loaded_worker(qtbot: "QtBot", worker: EngineWorker) -> EngineWorker:
    """The same with a model loaded."""
    with qtbot.waitSignal(worker.idle_changed, check_params_cb=bool):
        worker.load(Path("/models/starter"), LoadOptions())
    return worker
