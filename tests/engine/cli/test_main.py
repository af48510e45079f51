"""The fiddler command in this process: results on stdout, the rest on stderr, the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import starter
from engine.cli import main
from engine.cli.console import progress_text
from engine.options import LoadOptions
from engine.params import GenerationParams, Message, SamplingParams
from engine.progress import Progress
from engine.runtime import Engine
from kernels import native
from tests.engine.generation.tokenizer_folders import byte_level_folder

PROMPT = "What is the capital of France?"


@pytest.fixture(scope="module")
def folder(make_model: Any) -> str:
    model = make_model(seed=5, vocab_size=410, max_position_embeddings=320)
    byte_level_folder(model.path)
    return str(model.path)


@pytest.fixture(autouse=True)
def own_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    return tmp_path


def answer(folder: str, messages: list[Message] | str, params: GenerationParams) -> str:
    with Engine.load(folder, LoadOptions(device="cpu")) as engine:
        run = engine.continue_raw if isinstance(messages, str) else engine.generate
        return "".join(getattr(event, "text", "") for event in run(messages, params))


def generate(folder: str, *arguments: str) -> int:
    return main(["generate", "--model", folder, "--device", "cpu", "--prompt", PROMPT, *arguments])


def test_stdout_carries_the_answer_alone(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate(folder, "--greedy", "--max-tokens", "12") == 0
    out, err = capsys.readouterr()
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=12)
    assert out == answer(folder, [Message("user", PROMPT)], params) + "\n"
    assert "tokens/s" in err
    assert "limit of 12 tokens" in err


def test_quiet_leaves_out_all_but_what_the_user_must_know(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(folder, "--greedy", "--max-tokens", "2", "--quiet") == 0
    assert capsys.readouterr().err == "The answer reached the limit of 2 tokens.\n"


def test_the_system_message_and_the_sampling_arguments_are_heard(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sampling = SamplingParams(1.5, top_k=30, top_p=0.9, min_p=0.01, repetition_penalty=1.1, seed=3)
    arguments = "--temperature 1.5 --top-k 30 --top-p 0.9 --min-p 0.01 --repetition-penalty 1.1 --seed 3"
    assert generate(folder, *arguments.split(), "--system", "Be brief.", "--max-tokens", "20") == 0
    messages = [Message("system", "Be brief."), Message("user", PROMPT)]
    expected = answer(folder, messages, GenerationParams(sampling, max_tokens=20))
    assert capsys.readouterr().out == expected + "\n"


def test_raw_text_from_stdin_is_continued(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.read", lambda: "The fox", raising=False)
    arguments = [
        "--model",
        folder,
        "--device",
        "cpu",
        "--prompt",
        "-",
        "--raw",
        "--greedy",
        "--max-tokens",
        "9",
    ]
    assert main(["generate", *arguments]) == 0
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=9)
    assert capsys.readouterr().out == answer(folder, "The fox", params) + "\n"


def test_json_is_one_object_with_the_answer_and_its_figures(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(folder, "--greedy", "--max-tokens", "8", "--policy", "stream", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=8)
    assert report["answer"] == answer(folder, [Message("user", PROMPT)], params)
    assert report["finish_reason"] == "length"
    assert report["policy"] == "stream"
    assert report["stats"]["generated_tokens"] == 8
    hits = report["stats"]["hits"]
    assert hits["gpu"] == hits["streamed"] == 0
    assert hits["cpu"] >= 7 * 2 * 2  # steps × layers × top-k, and the prompt's


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_an_answer_in_fewer_bits_says_so(
    folder: str, capsys: pytest.CaptureFixture[str], precision: str
) -> None:
    assert generate(folder, "--greedy", "--max-tokens", "4", "--precision", precision, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["precision"] == precision
    assert report["stats"]["generated_tokens"] == 4


def test_a_stop_string_ends_the_answer(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=20)
    whole = answer(folder, [Message("user", PROMPT)], params)
    middle = whole[len(whole) // 2]
    assert generate(folder, "--greedy", "--max-tokens", "20", "--stop", middle) == 0
    assert capsys.readouterr().out == whole.split(middle)[0] + "\n"


def test_the_best_answers_of_a_beam_search_are_told_with_their_scores(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--max-tokens", "6", "--beams", "4", "--length-penalty", "0.5", "--early-stopping"]
    assert generate(folder, *arguments, "--answers", "3") == 0
    lines = capsys.readouterr().out
    assert generate(folder, *arguments, "--answers", "3", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["beams"], report["length_penalty"]) == (4, 0.5)
    answers = report["answers"]
    assert [answer["reason"] for answer in answers] == ["length"] * 3
    assert report["answer"] == answers[0]["text"]
    assert lines.startswith(answers[0]["text"])
    for answer in answers:
        assert answer["text"].rstrip() in lines
        assert f"(score {answer['score']:.4f})" in lines
    assert generate(folder, *arguments) == 0
    assert capsys.readouterr().out == f"{answers[0]['text']}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--length-penalty 2", "--length-penalty is for beam search"),
        ("--early-stopping", "--early-stopping is for beam search"),
        ("--beams 2 --temperature 0.5", "--temperature has no place"),
        ("--beams 2 --seed 0", "--seed has no place"),
        ("--beams 2 --top-k 3", "--top-k has no place"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    arguments: str, message: str, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        generate(folder, *arguments.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_impossible_numbers_of_beams_are_refused(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        generate(folder, "--beams", "2", "--answers", "3")
    assert caught.value.code == 2
    assert "answers cannot be 3" in capsys.readouterr().err


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


def test_text_that_is_not_unicode_is_answered(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments and input that are not valid UTF-8 arrive with halves of characters."""
    arguments = ["generate", "--model", folder, "--device", "cpu", "--greedy", "--max-tokens", "2"]
    answers = []
    for prompt in ("a\udcff\udcfe", "a\ufffd\ufffd"):
        assert main([*arguments, "--prompt", prompt]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


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
