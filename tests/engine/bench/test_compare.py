"""Comparing policies: the points and their times, the file, and what is derived from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.bench import compare_rows as rows
from engine.bench.compare_points import (
    BEAMS,
    INPUTS,
    LONG_INPUTS,
    Kind,
    Placing,
    Point,
    Sizes,
    expected_seconds,
    needed_context,
    points,
)
from engine.bench.compare_store import CompareStore, Comparison
from engine.bench.compare_table import markdown, table
from engine.bench.errors import BenchError
from engine.bench.rates import Rates
from tests.engine.bench.comparisons import RATES, TOKEN, full_comparison, record, setup

POLICIES = rows.POLICY_ORDER
# Mixtral in bf16 with a fifth of the experts on the GPU, on the machine whose rates DESIGN.md gives.
MIXTRAL = Sizes(32, 8, 2, 352321536, 176160768, 0.8)
SERVER = Rates(read=100e9, cpu=103e9, copy=55e9, cpu_together=87e9, copy_together=44e9, gpu=4000e9)


def scenarios(full: bool) -> set[str]:
    return {point.scenario for point in points(POLICIES, full=full, placements=True)}


def test_every_point_of_the_paper_is_there_in_full() -> None:
    full = scenarios(full=True)
    assert {f"prompt/{tokens}" for tokens in (*INPUTS, *LONG_INPUTS)} < full
    assert {f"decode/{tokens}" for tokens in INPUTS} < full
    assert {f"beams/{width}" for width in BEAMS} < full
    assert {"decode/32/popular", "decode/32/random"} < full
    assert scenarios(full=False) < full


@pytest.mark.parametrize("full", [False, True])
def test_every_policy_has_every_point_once(full: bool) -> None:
    found = points(POLICIES, full=full, placements=True)
    assert len({(point.scenario, point.policy) for point in found}) == len(found)
    assert len(found) == len(scenarios(full)) * len(POLICIES)
    assert all(point.placing is Placing.USUAL for point in points(("cpu",), full=full, placements=False))


def test_the_context_holds_every_point() -> None:
    for point in points(POLICIES, full=True, placements=True):
        tokens = 32 + point.size * (point.steps + 1) if point.kind is Kind.BEAMS else point.size + point.steps
        assert tokens < point.tokens <= needed_context()


def test_quick_is_over_in_eight_minutes_on_the_server() -> None:
    loading = 120
    seconds = sum(
        expected_seconds(point, MIXTRAL, SERVER) for point in points(POLICIES, full=False, placements=True)
    )
    assert loading + seconds < 7.5 * 60


@pytest.mark.parametrize(
    ("point", "seconds"),
    [  # measured on that server: 219 ms a token by the CPU alone, 175 ms together, 71 GB to copy for a prompt
        (Point(Kind.DECODE, 32, "cpu", 24), 24 * 0.2),
        (Point(Kind.DECODE, 32, "makespan", 24), 24 * 0.16),
        (Point(Kind.DECODE, 32, "stream", 24), 24 * 0.33),
        (Point(Kind.PROMPT, 2048, "stream"), 1.3),
    ],
)
def test_expected_times_are_about_right(point: Point, seconds: float) -> None:
    assert 0.8 * seconds < expected_seconds(point, MIXTRAL, SERVER) < 2 * seconds


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    store = CompareStore(path)
    comparison = store.open(setup())
    for point in points(POLICIES, full=True, placements=True):
        comparison.add(record(point))
    store.open(setup(gpu=False)).add(record(Point(Kind.PROMPT, 32, "cpu")))
    store.save()
    again = CompareStore(path)
    assert again.open(setup()).records == full_comparison().records
    assert [len(each.records) for each in again.all()] == [len(comparison.records), 1]


def test_other_setups_do_not_mix(tmp_path: Path) -> None:
    store = CompareStore(tmp_path / "compare.json")
    store.open(setup()).add(record(Point(Kind.PROMPT, 32, "cpu")))
    assert not store.open(setup(gpu=False)).records


def damaged(data: object) -> list[str]:
    whole = json.loads(json.dumps(data))
    without = json.loads(json.dumps(data))
    del without["comparisons"][0]["records"][0]["rates"]
    strange = json.loads(json.dumps(data))
    strange["comparisons"][0]["records"][0]["seconds"] = -1
    machine = json.loads(json.dumps(data))
    machine["comparisons"][0]["setup"]["machine"] = {}
    return [json.dumps(each) for each in (without, strange, machine, whole | {"version": 99}, [], 7)]


def test_what_is_no_such_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    store = CompareStore(path)
    store.open(setup()).add(record(Point(Kind.PROMPT, 32, "cpu")))
    store.save()
    for text in [*damaged(json.loads(path.read_text())), "{", "\x00", "[" * 100_000]:
        path.write_text(text)
        with pytest.raises(BenchError, match=r"compare\.json"):
            CompareStore(path)
        assert path.read_text() == text


def test_whole_answers_are_derived_from_prompts_and_steps() -> None:
    row = rows.answer_rows(full_comparison(), 64)[1]
    assert row.title == "64 in, 128 out"
    for policy, token in TOKEN.items():
        assert row.cells[policy] == pytest.approx(128 / (5 * token + 127 * token))
    assert row.best == "makespan"


def test_beams_are_held_against_the_same_policy_beam_by_beam() -> None:
    gain = next(each for each in rows.beam_gains(full_comparison()) if each.width == 8)
    assert gain.policy == "paper"
    assert gain.gain == pytest.approx(8 * 0.2 / 0.4)
    assert gain.allowed == pytest.approx(8 * 64 / 160)
    assert gain.percent == pytest.approx(125)


def test_the_table_has_every_scenario_and_the_derived_grid() -> None:
    text = "\n".join(table(full_comparison()))
    assert "32 in, 512 out" in text
    assert "first token of 4096" in text
    assert "16 beams" in text
    assert "popular experts resident          5.56      2.78      5.56      6.94      6.67" in text
    assert "are derived from both" in text


def test_what_was_left_out_is_told() -> None:
    comparison = full_comparison()
    comparison.left_out.append("beams/16 with stream (about 40.0 s)")
    assert "Left out for lack of time: beams/16 with stream" in "\n".join(table(comparison))
    comparison.left_out *= 9
    lines = table(comparison)
    begin = next(number for number, line in enumerate(lines) if line.startswith("Left out"))
    assert max(map(len, lines[begin:])) <= 108


def test_an_interrupted_comparison_says_so() -> None:
    comparison = full_comparison()
    assert "Interrupted" not in "\n".join(table(comparison))
    comparison.complete = False
    assert table(comparison)[-1] == "Interrupted: the same command goes on with the rest."


def test_two_runs_keep_what_the_other_one_has_measured(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    prompt, token = Point(Kind.PROMPT, 32, "cpu"), Point(Kind.DECODE, 32, "cpu", 24)
    first, second = CompareStore(path), CompareStore(path)
    first.add(first.open(setup()), record(prompt))
    second.add(second.open(setup()), record(token))
    second.add(second.open(setup(gpu=False)), record(token))
    first.add(first.open(setup()), record(Point(Kind.BEAMS, 4, "cpu", 12)))
    kept = {each.setup.machine["gpu"]: set(each.records) for each in CompareStore(path).all()}
    assert kept == {
        "A GPU": {("prompt/32", "cpu"), ("decode/32", "cpu"), ("beams/4", "cpu")},
        None: {("decode/32", "cpu")},
    }


def test_of_a_point_that_both_know_the_newer_figure_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    point = Point(Kind.PROMPT, 32, "cpu")
    oldest = CompareStore(path)
    oldest.add(oldest.open(setup()), record(point))
    first, second = CompareStore(path), CompareStore(path)
    again = replace(record(point), seconds=7.0)
    second.add(second.open(setup()), again)
    first.add(first.open(setup()), record(Point(Kind.DECODE, 32, "cpu", 24)))
    (comparison,) = CompareStore(path).all()
    assert comparison.find("prompt/32", "cpu") == again
    second.add(second.open(setup()), replace(again, seconds=6.0))
    assert CompareStore(path).all()[0].records["prompt/32", "cpu"].seconds == 6.0


def test_an_empty_or_partial_comparison_is_a_table_too() -> None:
    assert "Nothing was measured." in table(Comparison(setup()))
    partial = Comparison(setup())
    partial.add(record(Point(Kind.BEAMS, 4, "makespan", 12)))
    text = "\n".join(table(partial))
    assert "4 beams" in text
    assert "whole answers" not in text.split("Each prompt")[0]


def test_markdown_is_a_table_with_the_best_in_bold_and_the_command() -> None:
    comparison = full_comparison()
    comparison.command = "fiddler bench compare --full"
    lines = markdown(comparison)
    cells = [line.count("|") for line in lines if line.startswith("|")]
    assert set(cells) == {7}
    assert "| 16 beams, tokens/s | 2.50 | 1.25 | 2.50 | **3.12** | 3.33 |" in lines
    assert lines[-1] == "    fiddler bench compare --full"
    comparison.command = ""
    assert markdown(comparison) == lines[:-2]


def test_short_times_are_more_than_zeros() -> None:
    comparison = Comparison(setup())
    comparison.add(replace(record(Point(Kind.PROMPT, 32, "cpu")), seconds=2.24e-5, floor=0.0098))
    row = next(line for line in table(comparison) if "first token of 32" in line)
    assert row.split()[-2:] == ["2.2e-05", "0.0098"]


def test_without_a_gpu_there_is_one_column_for_all_policies() -> None:
    comparison = Comparison(setup(gpu=False))
    comparison.add(record(Point(Kind.DECODE, 32, "makespan", 24)))
    text = "\n".join(table(comparison))
    assert "any policy" in text
    assert "every policy means the same" in text
    assert "GPU" not in text.replace(RATES.text(), "")
    assert RATES.text() in text


def test_the_summary_holds_the_own_policy_against_the_roofline_and_the_others() -> None:
    found = rows.summary(full_comparison())
    assert found is not None
    assert found.percent == pytest.approx(100 * 0.15 / 0.16)
    assert found.ahead == pytest.approx(0.2 / 0.16)
    assert found.allowed == pytest.approx(1.2)
    assert found.prompts == {tokens: pytest.approx(0.8) for tokens in (*INPUTS, *LONG_INPUTS)}
    assert "1.25 × as fast as the better of paper and cpu" in "\n".join(table(full_comparison()))
    assert rows.summary(Comparison(setup())) is None
    assert rows.summary(Comparison(setup(gpu=False))) is None
