"""The fiddler command in this process: results on stdout, the rest on stderr, the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import starter
from engine.cli import main
from engine.cli.console import progress_text
from engine.paths import profiles_dir
from engine.progress import Progress
from kernels import native
from tests.engine.cli.answers import generate


def test_an_error_is_told_in_three_parts_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(str(tmp_path / "nowhere"), "--json") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "fiddler: " in err
    assert "  Why: " in err
    assert "  What to do: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--temperature", "-1"],
        ["--greedy", "--temperature", "1"],
        ["--policy", "fastest"],
        ["--precision", "int3"],
        ["--max-tokens", "0"],
        ["--context", "2"],
        ["--vram-budget", "-3"],
        ["--raw", "--system", "x"],
        ["--stop", ""],
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_loaded(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        generate("/nowhere", *arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "usage: fiddler generate" in err
    assert "nowhere" not in err


def test_the_computer_is_shown_in_words_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hardware"]) == 0
    assert "Processor: " in capsys.readouterr().out
    assert main(["hardware", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["memory"]["total"] > 0
    assert {"cpu", "gpus", "disk", "fingerprint"} <= set(found)


def test_a_plan_is_made_for_models_on_disk_and_not_yet_there(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--model", folder, "--json", "--device", "cpu", "--context", "100"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["layers"], plan["experts"], plan["context_length"]) == (2, 4, 100)
    assert [need["resource"] for need in plan["requirements"]["needs"]] == ["ram"]
    assert main(["plan", "--model", "Mixtral-8x7B", "--device", "cpu", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["layers"] * plan["experts"] == 256
    assert [need["resource"] for need in plan["requirements"]["needs"]] == ["ram", "disk"]
    assert any("was measured" in assumption for assumption in plan["assumptions"])
    assert main(["plan", "--model", "starter", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "240 experts" in out
    assert "disk space needed" in out


def test_a_calibration_is_kept_and_used_by_the_plan(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--model", folder, "--device", "cpu", "--json"]) == 0
    out, err = capsys.readouterr()
    profile = json.loads(out)
    assert len(profile["popularity"]) == 2
    assert "One expert on the CPU" in err
    assert main(["plan", "--model", folder, "--device", "cpu", "--json"]) == 0
    assert "calibration" in json.loads(capsys.readouterr().out)["basis"]


def test_a_plan_says_why_a_calibration_is_not_used(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--model", folder, "--quiet"]) == 0
    (kept,) = profiles_dir().glob("*.json")
    kept.write_text('{"version": 1}')
    capsys.readouterr()
    assert main(["plan", "--model", folder, "--quiet"]) == 0
    assert "from an older version of this program" in capsys.readouterr().out


def test_a_calibration_is_for_one_precision(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--model", folder, "--device", "cpu", "--precision", "int8", "--json"]
    assert main(["calibrate", *chosen]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert profile["precision"] == "int8"
    assert profile["kernels"]["format"] == "int8"
    assert not profile["exact_activations"]
    assert main(["plan", *chosen]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["precision"] == "int8"
    assert "calibration" in plan["basis"]
    assert main(["plan", *chosen, "--exact-activations"]) == 0  # these would be other times
    assert "before calibration" in json.loads(capsys.readouterr().out)["basis"]
    assert main(["plan", "--model", folder, "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "before calibration" in out
    assert "Experts in bf16" in out


def test_the_starter_model_is_made_when_it_is_missing(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(progress: Any, _cancel: Any, *, force: bool) -> Path:
        assert force
        progress(Progress("Converting", 1, 2, "layers"))
        return Path(folder)

    monkeypatch.setattr(starter, "ensure", ensure)
    assert generate("starter", "--greedy", "--max-tokens", "1", "--force") == 0
    err = capsys.readouterr().err
    assert "starter model is made first" in err
    assert "Converting" in err


def test_progress_is_put_in_words() -> None:
    assert progress_text(Progress("Loading experts", 120, 240, "experts")) == (
        "Loading experts: 120 of 240 experts (50%)"
    )
    assert progress_text(Progress("Fetching", 2**20, 2**21, "bytes")) == "Fetching: 1.0 MiB of 2.0 MiB (50%)"
    assert progress_text(Progress("Checking")) == "Checking …"


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("fiddler 0.")


@pytest.mark.parametrize("option", ["--vram-budget", "--ram-reserve"])
@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "-1"])
def test_impossible_amounts_of_memory_are_refused(
    folder: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        generate(folder, f"{option}={value}")
    assert ended.value.code == 2
    assert f"{option} cannot be" in capsys.readouterr().err


def test_a_home_folder_of_nobody_is_told_as_a_missing_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("plan", "calibrate"):
        assert main([command, "--model", "~nobody-of-this-name/model"]) == 1
        assert "There is no folder" in capsys.readouterr().err


def test_more_threads_than_the_system_gives_is_told(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_threads(*_: object) -> None:
        raise RuntimeError("Resource temporarily unavailable")

    monkeypatch.setattr(native.load(), "Pool", no_threads)
    assert generate(folder, "--threads", "9999") == 1
    assert "does not give 9999 threads" in capsys.readouterr().err


def test_a_shortage_names_the_option_that_goes_on_anyway(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(folder, "--ram-reserve", "100000") == 1
    assert "add --force" in capsys.readouterr().err
    assert generate(folder, "--ram-reserve", "100000", "--force", "--max-tokens", "1") == 0
