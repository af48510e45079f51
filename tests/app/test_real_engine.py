"""What the window adds to the engine's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.real_engine import RealEngine
from engine import starter
from engine.errors import CheckpointError
from engine.options import LoadOptions
from engine.progress import CancelToken, ignore_progress


def refusal(folder: Path) -> CheckpointError:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError) as raised:
        RealEngine().load(folder, LoadOptions(), ignore_progress, CancelToken())
    assert "config.json is not readable" in raised.value.what
    return raised.value


def test_a_damaged_starter_model_has_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was made on this computer, so nobody can download one of its files again."""
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path / "data"))
    assert "made anew" in refusal(starter.starter_dir()).action
    assert not starter.is_ready()  # so that choosing it does make it anew
    assert "Download" in refusal(tmp_path / "other").action
