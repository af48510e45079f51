from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.generation.tokenizer_folders import byte_level_folder


@pytest.fixture(scope="module")
def folder(make_model: Any) -> str:
    model = make_model(seed=5, vocab_size=410, max_position_embeddings=320)
    byte_level_folder(model.path)
    return str(model.path)


@pytest.fixture(autouse=True)
def own_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    return tmp_path
