"""Shared by the tests of the window: no display needed, Qt's warnings fail, the user's data is safe."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before anything imports Qt

from pathlib import Path

import pytest

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
