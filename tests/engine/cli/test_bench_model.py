"""fiddler bench model and fiddler bench compare, with a tiny model: arguments, output, files, Ctrl-C."""

from __future__ import annotations

import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.bench import compare_store, driver
from engine.calibration import kernels
from engine.cli import main
from engine.errors import FileError
from kernels import native
from kernels.tuning_probe import measure_tuning

MODEL = "bench model --preset tiny --device cpu --threads 2 --prompts 8,16 --tokens 4 --repeats 1"
COMPARE = "bench compare --preset tiny --device cpu --threads 2"


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.bench import model_rates

    real = model_rates.measure_rates
    monkeypatch.setattr(kernels, "measure_tuning", partial(measure_tuning, seconds=1e-3))

    def measure_rates(parts: Any, cancel: Any, gpu: Any) -> Any:
        return real(parts, cancel, gpu, seconds=0.01)

    monkeypatch.setattr("engine.bench.model_run.measure_rates", measure_rates)
    monkeypatch.setattr("engine.bench.compare_run.measure_rates", measure_rates)


def test_json_has_every_figure_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MODEL.split(), "--json", "--soak", "80", "--quiet"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["complete"]
    assert report["machine"]["threads"] == 2
    assert report["model"]["layers"] == 3
    assert report["model"]["routing"] == "uniform"
    assert [each["tokens"] for each in report["prompts"]] == [8, 16]
    for each in report["prompts"]:
        assert each["ratio"] == pytest.approx(each["seconds"] / each["floor"])
    decode = report["decode"]
    assert decode["tokens"] == 4
    assert decode["tokens_per_second"] == pytest.approx(1 / decode["mean"])
    assert decode["percent_of_roofline"] == pytest.approx(100 * decode["floor"] / decode["mean"])
    assert report["rates"]["cpu_gbs"] > 0
    assert report["rates"]["gpu_gbs"] is None
    assert report["memory"]["within_budget"]
    assert report["memory"]["ram_peak"] >= report["memory"]["ram_now"] > report["memory"]["arena"] > 0
    assert report["soak"]["tokens"] == 80
    assert err == ""


def test_the_table_says_that_policies_mean_the_same_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"{MODEL} --zipf 0.5 --reuse 0.25 --layers 1 --soak 40".split()) == 0
    out, err = capsys.readouterr()
    (soak,) = [line for line in out.splitlines() if "40 tokens in 40 conversations" in line]
    assert len(soak) <= 108
    assert "every policy means the same" in out
    assert "routing: Zipf exponent 0.5, 25% of tokens as the one before." in out
    assert "tiny of 1 layer (random weights): 8 experts in bf16" in out
    assert "decode: " in out
    assert "Loading experts" in err


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_other_precisions_are_measured_too(precision: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MODEL.split(), "--precision", precision, "--quiet"]) == 0
    out = capsys.readouterr().out
    assert f"experts in {precision}" in out
    assert "\nKernels: " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"{MODEL} --preset gpt2", "invalid choice"),
        (f"{MODEL} --layers 0", "cannot have 0 layers"),
        (f"{MODEL} --zipf -1", "--zipf cannot be -1"),
        (f"{MODEL} --reuse 2", "--reuse cannot be 2"),
        (f"{MODEL} --seed -3", "--seed cannot be -3"),
        (f"{MODEL} --tokens 0", "not 0"),
        (f"{MODEL} --repeats 0", "1 to 100 times"),
        (f"{MODEL} --soak -1", "--soak"),
        (f"{MODEL} --context 17", "must hold what is measured: 21 tokens"),
        (f"{MODEL} --prompts 8,x", "“x” is no number"),
        (f"{MODEL} --model starter", "not allowed with argument"),
        ("bench model --model starter --layers 3", "own layers"),
        ("bench model --model starter --seed 3", "own routing"),
        (f"{COMPARE} --quick --full", "not allowed with argument"),
        (f"{COMPARE} --policy paper", "unrecognized arguments"),
        (f"{COMPARE} --plot picture.jpeg", "no PNG file"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments.split())
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize("command", [MODEL, COMPARE])
def test_threads_and_memory_that_the_system_does_not_give_are_told(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*command.split(), *(["--results", str(tmp_path / "a.json")] if command is COMPARE else [])]

    def no_threads(*_: object) -> None:
        raise RuntimeError("Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(native.load(), "Pool", no_threads)
        assert main([*arguments, "--quiet"]) == 1
    assert "does not give 2 threads" in capsys.readouterr().err

    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(driver.Driver, "read", no_memory)
    assert main([*arguments, "--quiet"]) == 1
    error = capsys.readouterr().err
    assert "memory is full" in error
    assert "--force" not in error


def test_the_shortest_run_has_room_to_warm_up(capsys: pytest.CaptureFixture[str]) -> None:
    shortest = "bench model --preset tiny --device cpu --prompts 1 --tokens 1 --repeats 1 --quiet --json"
    assert main(shortest.split()) == 0
    assert json.loads(capsys.readouterr().out)["decode"]["tokens"] == 1


def test_more_than_the_models_context_is_refused_before_it_is_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(f"{MODEL} --tokens 9000".split()) == 1
    error = capsys.readouterr().err
    assert "holds 8192 tokens in its context, not 9017" in error
    assert "Loading" not in error


def test_a_comparison_leaves_out_what_the_models_context_cannot_hold(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "results.json")
    assert main(f"bench compare --model {folder} --device cpu --full --json --results {path}".split()) == 0
    out, err = capsys.readouterr()
    (comparison,) = json.loads(out)["comparisons"]
    found = {record["scenario"] for record in comparison["records"]}
    assert {"prompt/256", "decode/256", "beams/8"} < found
    assert not found & {"prompt/512", "prompt/4096", "beams/16"}
    assert comparison["complete"]
    assert "more than the model's context of 320 tokens is left out" in err


def test_ctrl_c_shows_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = driver.Driver.read
    prompts = []

    def read(self: driver.Driver, tokens: int) -> Any:
        prompts.append(tokens)
        if len(prompts) == 3:  # the second after the one to warm up
            signal.raise_signal(signal.SIGINT)
        return real(self, tokens)

    monkeypatch.setattr(driver.Driver, "read", read)
    assert main([*MODEL.split(), "--quiet"]) == 130
    out = capsys.readouterr().out
    assert "\n     8 " in out
    assert "Interrupted: the rest was not measured." in out


def test_a_comparison_is_kept_continued_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.json"
    command = [*COMPARE.split(), "--results", str(path), "--quiet"]
    assert main([*command, "--json"]) == 0
    comparison = json.loads(capsys.readouterr().out)["comparisons"][0]
    assert comparison["complete"]
    assert comparison["left_out"] == []
    first = comparison["records"]
    assert {record["policy"] for record in first} == {"makespan"}
    assert main(["bench", "compare", "--results", str(path), "--show", "--markdown"]) == 0
    text = capsys.readouterr().out
    assert "| | any policy | bandwidth allows |" in text
    assert text.endswith("\n    fiddler bench compare --quick --preset tiny --device cpu --threads 2\n")
    assert main([*command, "--show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparisons"][0]["records"] == first


def test_the_results_lie_with_the_programs_data_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    assert main(["bench", "compare", "--show"]) == 1
    assert "There is nothing in" in capsys.readouterr().err
    assert main([*COMPARE.split(), "--quiet"]) == 0
    assert (tmp_path / "compare.json").is_file()


def test_ctrl_c_shows_and_keeps_what_was_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = driver.Driver.decode
    calls = []

    def decode(self: driver.Driver, tokens: int) -> Any:
        calls.append(tokens)
        if len(calls) == 3:  # warming up, the first point, the second
            signal.raise_signal(signal.SIGINT)
        return real(self, tokens)

    monkeypatch.setattr(driver.Driver, "decode", decode)
    path = tmp_path / "results.json"
    assert main([*COMPARE.split(), "--results", str(path), "--exact-activations", "--json"]) == 130
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert not comparison["complete"]
    assert comparison["records"]
    assert json.loads(path.read_text())["comparisons"][0]["records"] == comparison["records"]
    assert comparison["command"].endswith("--exact-activations --device cpu --threads 2")


def test_a_file_that_cannot_be_written_is_told_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, _data: str) -> None:
        raise FileError(f"“{path.name}” could not be saved.", why="The disk is full.")

    monkeypatch.setattr(compare_store, "write_atomically", full)
    assert main([*COMPARE.split(), "--results", str(tmp_path / "a.json")]) == 1
    error = capsys.readouterr().err
    assert "“a.json” could not be saved." in error
    assert "Loading" not in error


def test_a_file_of_something_else_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.json"
    path.write_text("{}")
    assert main([*COMPARE.split(), "--results", str(path)]) == 1
    assert "is no file of `fiddler bench compare`" in capsys.readouterr().err
    assert path.read_text() == "{}"


@pytest.mark.starter
@pytest.mark.slow
def test_the_starter_model_is_measured_with_its_own_routers(
    starter_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = f"bench model --model {starter_dir} --device cpu --threads 2 --prompts 16 --tokens 4 --quiet"
    assert main(arguments.split()) == 0
    out = capsys.readouterr().out
    assert "routing: by its routers" in out
    assert "live there" not in out
