"""fiddler bench: the arguments, what goes to stdout, and Ctrl-C; with a few of the starter's experts."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from engine.bench import kernel_run
from engine.cli import main
from engine.units import MIB
from tests.engine.bench.reports import round_report

SHORT = "bench kernels --shape starter --formats bf16 --isa portable --tokens 1,2 --seconds 0.001 --threads 1"


@pytest.fixture(autouse=True)
def few_experts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_run, "wanted_bytes", lambda _: 16 * MIB)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(round_report().to_dict()), "utf-8")
    return path


def test_json_is_one_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT.split(), "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["machine"]["threads"] == 1
    assert report["shape"] == {"hidden": 576, "intermediate": 768, "experts": 2}
    assert report["read_gbs"] == max(report["reads_gbs"]) > 0
    assert [(row["format"], row["isa"], row["tokens"]) for row in report["results"]] == [
        ("bf16", "portable", 1),
        ("bf16", "portable", 2),
    ]
    for row in report["results"]:
        seconds = row["ms"] / 1e3
        assert row["gbs"] == pytest.approx(3 * 576 * 768 * 2 / seconds / 1e9)
        assert row["percent_of_read"] == pytest.approx(100 * row["gbs"] / report["read_gbs"])
        assert row["tflops"] == pytest.approx(6 * 576 * 768 * row["tokens"] / seconds / 1e12)
        assert row["torch_ms"] > 0
        assert row["activations"] == "exact"
    assert "Measuring bf16 with portable" in err


def test_the_table_goes_to_stdout_and_quiet_silences_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT.split(), "--quiet", "--experts", "1"]) == 0
    out, err = capsys.readouterr()
    assert "Plain reading: " in out
    assert "\nbf16    portable           2  exact " in out
    assert "\nbf16 with portable: 1 token at " in out
    assert err == ""


@pytest.mark.parametrize("exact", [False, True])
def test_rounded_activations_can_be_forbidden(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    real, allowed = kernel_run.measure_tuning, []

    def measure_tuning(*arguments: Any, **how: Any) -> Any:
        allowed.append(how["eight_bit"])
        return real(*arguments, **how)

    monkeypatch.setattr(kernel_run, "measure_tuning", measure_tuning)
    assert main([*SHORT.split(), *["--exact-activations"] * exact]) == 0
    assert allowed == [not exact]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--formats q9", "q9"),
        ("--isa sse9", "sse9"),
        ("--tokens 1,x", "“x” is no number"),
        ("--experts 0", "1 to 64 experts"),
        ("--seconds nan", "not nan"),
        ("--threads 0", "1 to 1024 threads"),
        ("--shape gpt2", "invalid choice"),
        ("--plot /nowhere/at/all.png", "cannot be written to /nowhere/at/all.png"),
        ("--plot picture.jpeg", "no PNG file"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*SHORT.split(), *arguments.split()])
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "usage: fiddler bench kernels" in err


def test_a_folder_is_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(SystemExit):
        main([*SHORT.split(), "--plot", str(tmp_path / "folder.png")])
    assert "cannot be written" in capsys.readouterr().err


def test_bench_alone_names_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["bench"])
    assert caught.value.code == 2
    assert "BENCHMARK" in capsys.readouterr().err


def test_a_saved_run_is_shown_and_drawn(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    picture = saved.with_name("picture.png")
    assert main(["bench", "kernels", "--from", str(saved), "--plot", str(picture)]) == 0
    assert "A processor, 4 threads" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_saved_run_is_given_back_as_it_was(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "kernels", "--from", str(saved), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["machine"] == round_report().machine
    assert len(again["results"]) == 8


def test_what_is_no_saved_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("{}")
    assert main(["bench", "kernels", "--from", str(tmp_path / "other.json")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no saved run" in err


@pytest.mark.parametrize(("before", "shown"), [(0, False), (2, True)])
def test_ctrl_c_prints_what_was_measured(
    before: int, shown: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`before` figures of torch are measured before Ctrl-C; the one during reading leaves nothing to show."""
    real, reads, calls = kernel_run.time_calls, kernel_run.read_gbs, 0

    def time_calls(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > before:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    def read_gbs(*arguments: Any) -> float:
        if not before:
            signal.raise_signal(signal.SIGINT)
        return reads(*arguments)

    monkeypatch.setattr(kernel_run, "time_calls", time_calls)
    monkeypatch.setattr(kernel_run, "read_gbs", read_gbs)
    assert main(SHORT.split()) == 130
    out, err = capsys.readouterr()
    assert ("Plain reading" in out) == shown
    assert ("Interrupted: the rest was not measured." in out) == shown
    assert ("Interrupted." in err) == (not shown)
