"""How a walk through the wizard ends, and how the next one begins: closed, resumed, from the chat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.wizard import flow
from app.wizard.events import (
    Back,
    Begin,
    Calibrate,
    Calibrated,
    CancelWork,
    Check,
    Checked,
    Choose,
    Close,
    Detect,
    Detected,
    Event,
    Failed,
    Fetch,
    Fetched,
    Load,
    Loaded,
    Next,
    Planned,
    Probed,
    Progressed,
    RememberChoice,
    RememberModel,
    Retry,
    Skip,
    Stop,
    Stopped,
    Unload,
)
from app.wizard.state import FlowState, Step, Work
from app.wizard.visits import Saved, choose_model, recalibrate, resume
from engine.errors import CheckpointError
from engine.progress import Progress
from tests.app.wizard.walks import (
    BROKEN,
    HARDWARE,
    HUB,
    PATH,
    PROBE,
    PROFILE,
    STARTER,
    STATUS,
    at_calibrate,
    at_get,
    at_plan,
    at_result,
    measuring,
    walk,
)


@pytest.mark.parametrize("make", [FlowState, at_plan, at_result])
def test_close_at_rest_closes_at_once(make: Any) -> None:
    state, effects = walk(make(), Close())
    assert state.closed
    assert effects == []


@pytest.mark.parametrize(
    ("make", "end"),
    [
        (at_get, Stopped(Work.FETCH)),
        (at_get, Fetched(PATH)),
        (at_get, Failed(Work.FETCH, BROKEN)),
        (at_calibrate, Stopped(Work.LOAD)),
        (at_calibrate, Loaded(STATUS)),
        (measuring, Stopped(Work.CALIBRATE)),
        (measuring, Calibrated(PROFILE)),
    ],
)
def test_close_waits_for_the_work_to_stop(make: Any, end: Event) -> None:
    state, effects = walk(make(), Close())
    assert not state.closed
    assert effects == [CancelWork()]
    assert walk(state, Close()) == (state, [])
    state, effects = walk(state, end)
    assert state.closed
    assert not any(isinstance(effect, Load | Calibrate | Check) for effect in effects)


def test_close_after_cancel_needs_no_second_cancel() -> None:
    state, effects = walk(at_get(), Stop(), Close())
    assert effects == [CancelWork()]
    assert walk(state, Stopped(Work.FETCH))[0].closed


def test_late_answers_are_ignored() -> None:
    stopped, _ = walk(at_get(), Stop(), Stopped(Work.FETCH))
    late = (
        Fetched(PATH),
        Stopped(Work.FETCH),
        Failed(Work.LOAD, BROKEN),
        Loaded(STATUS),
        Calibrated(PROFILE),
        Checked(PROFILE),
    )
    for event in (*late, Probed(PROBE), Progressed(Progress("x"))):
        assert walk(stopped, event) == (stopped, [])
    closed, _ = walk(FlowState(), Begin(), Close())
    for event in (*late, Detected(HARDWARE), Next(), Begin()):
        assert walk(closed, event) == (closed, [])


class TestResume:
    def test_nothing_saved(self) -> None:
        assert resume(Saved()).step is Step.COMPUTER

    def test_interrupted_download_waits_for_the_user(self) -> None:
        state, effects = walk(resume(Saved(choice=HUB)), Begin())
        assert (state.step, state.stopped, effects) == (Step.GET, True, [Detect()])
        assert walk(state, Retry())[1] == [RememberChoice(HUB), Fetch(HUB, False)]

    def test_interrupted_calibration_waits_for_the_user(self) -> None:
        state, effects = walk(resume(Saved(STARTER, PATH)), Begin(), Checked(None))
        assert (state.step, state.work) == (Step.CALIBRATE, None)
        assert effects == [Detect(), Check(PATH)]
        assert walk(state, Retry())[1] == [Load(PATH, False)]
        assert walk(state, Skip())[0].step is Step.RESULT

    def test_after_calibration_only_the_result_is_left(self) -> None:
        state, _ = walk(resume(Saved(STARTER, PATH)), Begin(), Checked(PROFILE), Loaded(STATUS))
        assert state.step is Step.RESULT
        assert flow.can_next(state)

    def test_a_model_that_is_gone_is_explained_where_another_is_chosen(self) -> None:
        gone = CheckpointError("The model's folder is gone.")
        state = resume(Saved(STARTER, PATH, gone))
        assert (state.step, state.problem) == (Step.PLAN, gone)

    def test_after_the_user_went_on_steps_start_by_themselves(self) -> None:
        state, _ = walk(resume(Saved(STARTER, PATH)), Begin(), Checked(None), Back(), Next(), Checked(None))
        assert state.work is Work.LOAD


def test_recalibrate_measures_at_once_and_ends_with_the_result() -> None:
    state, effects = walk(recalibrate(PATH, status=STATUS), Begin())
    assert effects == [Detect(), Calibrate()]
    assert not flow.can_back(state)
    assert not flow.can_skip(state)
    state, _ = walk(state, Calibrated(PROFILE), Next(), Next())
    assert state.finished


def test_recalibrate_loads_first_when_nothing_is_loaded() -> None:
    assert walk(recalibrate(PATH, status=None), Begin())[1] == [Detect(), Load(PATH, False)]


def test_choosing_another_model_from_the_chat() -> None:
    state, effects = walk(choose_model(STARTER, STATUS), Begin(), Choose(HUB), Planned(HUB, False))
    assert state.step is Step.PLAN
    assert effects == [Detect()]
    assert walk(state, Next())[1][0] == Unload()


def test_another_precision_of_the_loaded_model_is_loaded_afresh() -> None:
    state, _ = walk(at_result(), Back(), Back(), Back())
    assert state.step is Step.PLAN
    lighter = replace(STARTER, precision="int4")
    state, effects = walk(
        state, Choose(lighter), Planned(lighter, False), Next(), Fetched(PATH), Checked(None)
    )
    assert state.work is Work.LOAD
    assert effects == [
        Unload(),
        RememberChoice(lighter),
        Fetch(lighter, False),
        RememberModel(PATH, "int4"),
        Check(PATH),
        Load(PATH, False),
    ]
