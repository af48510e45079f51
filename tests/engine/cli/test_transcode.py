"""`fiddler transcode`: the table, the JSON object, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli import main
from tests.engine.transcode.files import Q, expert_tensors, write_gguf


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    kinds = {"w1": Q.Q4_K, "w3": Q.Q4_0, "w2": Q.Q6_K}
    return str(write_gguf(tmp_path / "mixed.gguf", expert_tensors(kinds, layers=2)))


def test_the_table_says_what_is_exact_rounded_and_refused(
    mixed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["transcode", mixed, "--quiet"]) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:4]}
    assert rows["w1"] == ["0–1", "Q4_K", "int4", "exact", "exact"]
    assert rows["w3"][:3] == ["0–1", "Q4_0", "int4"]
    assert 0 < float(rows["w3"][4].rstrip("%")) < float(rows["w3"][3].rstrip("%")) <= 0.391
    assert rows["w2"] == ["0–1", "Q6_K", "–", "–", "–", "refused"]
    assert "2 of 6 expert tensors cannot be taken over" in out
    assert err == ""


def test_json_is_one_object(mixed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transcode", mixed, "--json"]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert data["refused"] == 2
    assert [t["name"] for t in data["tensors"] if t["exact"]] == [
        "blk.0.ffn_gate_exps.weight",
        "blk.1.ffn_gate_exps.weight",
    ]
    assert "Comparing expert tensors" in err


def test_what_is_no_model_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transcode", str(tmp_path / "none.gguf")]) == 1
    assert "There is no such model." in capsys.readouterr().err
