"""Measuring points: each once, kept at once, continued later, and none begun that would not end in time."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.bench import compare_run
from engine.bench.compare_points import BEAM_INPUT, Kind, Placing, Point, needed_context
from engine.bench.compare_run import CompareRun, policies_of
from engine.bench.compare_store import CompareStore
from engine.bench.model_subject import LoadedSubject
from engine.errors import Cancelled
from engine.progress import CancelToken, Progress
from tests.engine.bench.subjects import mixed, tiny

POINTS = [
    Point(Kind.PROMPT, 32, "makespan"),
    Point(Kind.DECODE, 32, "makespan", 4),
    Point(Kind.DECODE, 32, "stream", 4),
    Point(Kind.BEAMS, 4, "cpu", 3),
    Point(Kind.DECODE, 32, "cpu", 6, Placing.POPULAR),
    Point(Kind.DECODE, 32, "cpu", 6, Placing.RANDOM),
]
SUBJECT = tiny(context=needed_context())


@pytest.fixture(autouse=True)
def gpu_in_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU as the second device, with a third of the experts on it."""

    @contextmanager
    def load(subject, progress, cancel, *, even=False) -> Iterator[LoadedSubject]:
        with mixed(subject, resident=8, even=even) as loaded:
            per_layer = loaded.resident.sum(axis=1).tolist()
            assert sorted(per_layer) == ([2, 3, 3] if even else [0, 0, 8])
            yield loaded

    monkeypatch.setattr(compare_run, "load_subject", load)


def run(path: Path, points: list[Point] = POINTS, **how) -> CompareRun:
    return CompareRun(SUBJECT, lambda _: points, CompareStore(path), **how)


def test_every_point_is_measured_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    comparison = run(path).measure()
    assert set(comparison.records) == {(point.scenario, point.policy) for point in POINTS}
    for record in comparison.records.values():
        assert record.seconds > 0 < record.floor
        assert record.resident == pytest.approx(1 / 3)
    beams = comparison.find("beams/4", "cpu")
    assert beams is not None
    assert 3 * 2 < beams.executions <= 3 * 8  # layers × experts, each once for all beams
    token = comparison.find("decode/32", "makespan")
    assert token is not None
    assert token.executions == 3 * 2
    (kept,) = CompareStore(path).all()
    assert kept.records == comparison.records


def test_a_later_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    first = dict(run(path, POINTS[:2]).measure().records)
    second = run(path, POINTS[:3]).measure().records
    assert {key: second[key] for key in first} == first
    assert len(second) == 3
    again = run(path, POINTS[:1], again=True).measure().records
    assert again["prompt/32", "makespan"] != first["prompt/32", "makespan"]


def test_more_steps_than_before_are_measured_anew(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    run(path, [Point(Kind.BEAMS, 4, "cpu", 2)]).measure()
    longer = run(path, [Point(Kind.BEAMS, 4, "cpu", 3)]).measure().find("beams/4", "cpu")
    assert longer is not None
    assert longer.steps == 3


def test_the_first_model_is_given_back_before_the_second_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what the GPU's allocator keeps of it, which other programs, and so plans, take for used."""
    loads, freed = [], []
    load, free = compare_run.load_subject, compare_run.free_unused

    @contextmanager
    def loading(*arguments, **named) -> Iterator[LoadedSubject]:
        with load(*arguments, **named) as loaded:
            loads.append(weakref.ref(loaded.parts.model))
            yield loaded

    def freeing() -> None:
        free()
        freed.append([model() is None for model in loads])

    monkeypatch.setattr(compare_run, "load_subject", loading)
    monkeypatch.setattr(compare_run, "free_unused", freeing)
    run(tmp_path / "compare.json", POINTS[-3:]).measure()
    assert freed == [[True]]
    assert len(loads) == 2


def test_where_the_time_is_up_the_model_is_not_loaded_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_run, "expected_seconds", lambda *_: 0.0)
    comparison = run(tmp_path / "compare.json", seconds=0.0).measure()
    assert not comparison.complete
    assert set(comparison.left_out) >= {
        "decode/32/popular with cpu",
        "decode/32/random with cpu",
    }


def test_points_that_would_not_end_in_time_are_left_out_and_told(tmp_path: Path) -> None:
    comparison = run(tmp_path / "compare.json", seconds=0).measure()
    assert not comparison.records
    assert len(comparison.left_out) == len(POINTS)
    assert comparison.left_out[3].startswith("beams/4 with cpu (about ")


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    cancel = CancelToken()

    def progress(step: Progress) -> None:
        if step.what == "Comparing policies" and step.done == 2:
            cancel.cancel()

    interrupted = run(path, progress=progress, cancel=cancel)
    with pytest.raises(Cancelled):
        interrupted.measure()
    assert interrupted.comparison is not None
    assert len(CompareStore(path).all()[0].records) == len(interrupted.comparison.records) == 2


def test_popular_experts_are_on_the_gpu_more_often_than_random_ones(tmp_path: Path) -> None:
    subject = replace(SUBJECT, zipf=2.0)
    executions = {}
    with mixed(subject, resident=6, even=True) as loaded:
        driver = compare_run.Driver(loaded, CancelToken())
        for placing in (Placing.POPULAR, Placing.RANDOM):
            compare_run.route(loaded, placing)
            driver.read(4)
            executions[placing] = driver.decode(100).resident_executions
    assert executions[Placing.POPULAR] > 1.5 * executions[Placing.RANDOM]


def test_without_a_gpu_one_policy_stands_for_all() -> None:
    with mixed(SUBJECT, resident=0) as loaded:
        assert policies_of(loaded, ("paper", "cpu", "makespan")) == ("makespan",)
        loaded.plan = replace(loaded.plan, has_gpu=True)
        assert policies_of(loaded, ("paper", "cpu")) == ("paper", "cpu")


def test_beams_really_differ_and_their_experts_run_once() -> None:
    with mixed(SUBJECT, resident=0) as loaded:
        driver = compare_run.Driver(loaded, CancelToken())
        work = compare_run.beam_steps(driver, BEAM_INPUT, 16, 5, CancelToken())
    assert len(work.seconds) == 5
    assert 3 * 5 * 6 < work.missing_executions <= 3 * 5 * 8  # 16 beams touch nearly all 8 experts
