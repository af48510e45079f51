"""fiddler generate in this process: the answer on stdout, the rest on stderr, what is refused."""

from __future__ import annotations

import io
import json

import pytest

from engine.cli import main
from engine.params import GenerationParams, Message, SamplingParams
from tests.engine.cli.answers import PROMPT, answer, generate


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


def test_stdin_need_not_be_valid_text(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"The f\xffx"), encoding="utf-8"))
    arguments = ["--model", folder, "--device", "cpu", "--raw", "--greedy", "--max-tokens", "5"]
    assert main(["generate", *arguments, "--prompt", "-"]) == 0
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=5)
    assert capsys.readouterr().out == answer(folder, "The f\N{REPLACEMENT CHARACTER}x", params) + "\n"


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
    for each in answers:
        assert each["text"].rstrip() in lines
        assert f"(score {each['score']:.4f})" in lines
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


def test_text_that_is_not_unicode_is_answered(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments and input that are not valid UTF-8 arrive with halves of characters."""
    arguments = ["generate", "--model", folder, "--device", "cpu", "--greedy", "--max-tokens", "2"]
    answers = []
    for prompt in ("a\udcff\udcfe", "a\ufffd\ufffd"):
        assert main([*arguments, "--prompt", prompt]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
