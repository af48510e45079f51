"""Walks through the wizard's state machine: the way to the chat, and every detour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
    DetectFailed,
    Event,
    Failed,
    Fetch,
    Fetched,
    Force,
    Load,
    Loaded,
    Next,
    Planned,
    Probed,
    Progressed,
    RememberChoice,
    RememberCompleted,
    RememberModel,
    Retry,
    Skip,
    Stop,
    Stopped,
    Unload,
)
from app.wizard.state import Choice, FlowState, Kind, Measured, Step, Work
from app.wizard.visits import Saved, choose_model, recalibrate, resume
from engine.errors import CheckpointError, DownloadError, ShortageError
from engine.progress import Progress

HARDWARE: Any = object()
PROBE: Any = object()
PROFILE: Any = object()
STATUS: Any = object()
STARTER = Choice(Kind.STARTER)
HUB = Choice(Kind.HUB, "someone/model", Path("/models"))
PATH = Path("/models/starter")
BROKEN = DownloadError("The connection broke.")
SHORT = ShortageError("3 GB of memory are missing.")


def walk(state: FlowState, *events: Event) -> tuple[FlowState, list[Any]]:
    """The state after `events`, and all effects on the way."""
    effects: list[Any] = []
    for event in events:
        state, more = flow.advance(state, event)
        effects += more
    return state, effects


def at_plan(choice: Choice = STARTER, short: bool = False) -> FlowState:
    return walk(FlowState(), Begin(), Detected(HARDWARE), Next(), Choose(choice), Planned(choice, short))[0]


def at_get(choice: Choice = STARTER) -> FlowState:
    return walk(at_plan(choice), Next())[0]


def at_calibrate() -> FlowState:
    """Loading the model, to measure it next."""
    return walk(at_get(), Fetched(PATH), Checked(None))[0]


def measuring() -> FlowState:
    return walk(at_calibrate(), Loaded(STATUS))[0]


def at_result() -> FlowState:
    return walk(measuring(), Probed(PROBE), Calibrated(PROFILE), Next())[0]


def test_the_whole_way_to_the_chat() -> None:
    state, effects = walk(
        FlowState(),
        Begin(),
        Detected(HARDWARE),
        Next(),
        Choose(STARTER),
        Planned(STARTER, False),
        Next(),
        Progressed(Progress("Converting", 1, 2)),
        Fetched(PATH),
        Checked(None),
        Loaded(STATUS),
        Probed(PROBE),
        Probed(PROBE),
        Calibrated(PROFILE),
        Next(),
        Next(),
    )
    assert state.finished
    assert state.probes == (PROBE, PROBE)
    assert state.measured is Measured.YES
    assert effects == [
        Detect(),
        RememberChoice(STARTER),
        Fetch(STARTER, False),
        RememberModel(PATH),
        Check(PATH),
        Load(PATH, False),
        Calibrate(),
        RememberCompleted(),
    ]


def test_a_valid_profile_skips_calibration() -> None:
    state, effects = walk(at_get(), Fetched(PATH), Checked(PROFILE))
    assert (state.step, state.work, state.measured) == (Step.RESULT, Work.LOAD, Measured.YES)
    assert Calibrate() not in effects


def test_a_calibration_that_needs_a_reload_loads_again_for_the_result() -> None:
    state, effects = walk(measuring(), Calibrated(PROFILE, reload=True), Next())
    assert (state.step, state.work) == (Step.RESULT, Work.LOAD)
    assert effects == [Load(PATH, False)]
    assert flow.can_next(walk(state, Loaded(STATUS))[0])


def test_calibration_waits_for_the_user_to_look_at_it() -> None:
    state, _ = walk(measuring(), Calibrated(PROFILE))
    assert state.step is Step.CALIBRATE
    assert flow.can_next(state)


@pytest.mark.parametrize("event", [Next(), Back(), Skip(), Stop()])
def test_the_first_page_waits_for_the_hardware(event: Event) -> None:
    state, _ = walk(FlowState(), Begin())
    assert walk(state, event) == (state, [])


def test_failed_detection_can_be_repeated() -> None:
    state, _ = walk(FlowState(), Begin(), DetectFailed(BROKEN))
    assert state.problem is BROKEN
    assert not flow.can_next(state)
    state, effects = walk(state, Retry())
    assert state.problem is None
    assert effects == [Detect()]
    assert flow.can_next(walk(state, Detected(HARDWARE))[0])


def test_the_starter_is_chosen_unless_something_else_was() -> None:
    assert walk(FlowState(), Detected(HARDWARE), Next())[0].choice == STARTER
    assert walk(FlowState(choice=HUB), Detected(HARDWARE), Next())[0].choice == HUB


def test_next_waits_for_the_plan_of_this_choice() -> None:
    state, _ = walk(at_plan(), Choose(HUB))
    assert not flow.can_next(state)
    assert not flow.can_next(walk(state, Planned(STARTER, False))[0])
    assert flow.can_next(walk(state, Planned(HUB, False))[0])


def test_a_shortage_holds_the_plan_until_it_is_forced() -> None:
    state = at_plan(HUB, short=True)
    assert walk(state, Next()) == (state, [])
    state, effects = walk(state, Force(True), Next())
    assert Fetch(HUB, True) in effects
    assert walk(state, Fetched(PATH), Checked(None))[1][-1] == Load(PATH, True)


def test_forcing_is_for_one_choice() -> None:
    state, _ = walk(at_plan(HUB, short=True), Force(True), Choose(STARTER), Choose(HUB), Planned(HUB, True))
    assert not state.force
    assert not flow.can_next(state)


def test_cancelled_download_continues() -> None:
    state, effects = walk(at_get(HUB), Stop())
    assert effects == [CancelWork()]
    assert not flow.can_stop(state)
    assert not flow.can_next(state)
    state, _ = walk(state, Stopped(Work.FETCH))
    assert (state.step, state.work, state.stopped) == (Step.GET, None, True)
    state, effects = walk(state, Retry())
    assert effects == [RememberChoice(HUB), Fetch(HUB, False)]
    assert not state.stopped


def test_failed_download_is_explained_and_continues() -> None:
    state, _ = walk(at_get(), Failed(Work.FETCH, BROKEN))
    assert (state.step, state.problem, state.work) == (Step.GET, BROKEN, None)
    assert not flow.can_next(state)
    assert walk(state, Retry())[1] == [RememberChoice(STARTER), Fetch(STARTER, False)]


def test_a_download_that_ended_before_the_cancel_arrived_is_kept() -> None:
    state, effects = walk(at_get(), Stop(), Fetched(PATH))
    assert effects == [CancelWork(), RememberModel(PATH)]
    assert (state.step, state.model_path, state.work) == (Step.GET, PATH, None)
    state, effects = walk(state, Next())
    assert effects == [Check(PATH)]
    assert walk(state, Checked(None))[1] == [Load(PATH, False)]


def test_an_unreadable_model_has_to_be_got_again() -> None:
    broken = CheckpointError("A file is damaged.")
    state, _ = walk(at_get(), Fetched(PATH), Failed(Work.CHECK, broken))
    assert (state.step, state.problem, state.model_path) == (Step.GET, broken, None)
    assert not flow.can_next(state)
    assert flow.can_retry(state)


def test_shortage_while_loading_is_done_anyway_on_request() -> None:
    state, _ = walk(at_calibrate(), Failed(Work.LOAD, SHORT))
    assert state.problem is SHORT
    state, effects = walk(state, Force(True))
    assert effects == [Load(PATH, True)]
    assert walk(state, Loaded(STATUS))[1] == [Calibrate()]


def test_force_after_another_error_starts_nothing() -> None:
    state, _ = walk(at_calibrate(), Failed(Work.LOAD, BROKEN))
    assert walk(state, Force(True))[1] == []


@pytest.mark.parametrize("work", [Work.LOAD, Work.CALIBRATE])
def test_calibration_cancelled_failed_and_repeated(work: Work) -> None:
    for end in (Stopped(work), Failed(work, BROKEN)):
        state = at_calibrate() if work is Work.LOAD else measuring()
        state, _ = walk(state, Probed(PROBE), end)
        assert (state.step, state.work) == (Step.CALIBRATE, None)
        assert not flow.can_next(state)
        state, effects = walk(state, Retry())
        assert effects == [Load(PATH, False) if work is Work.LOAD else Calibrate()]
        assert state.probes == ()


def test_cancel_during_the_last_moment_of_loading_does_not_start_measuring() -> None:
    state, effects = walk(at_calibrate(), Stop(), Loaded(STATUS))
    assert effects == [CancelWork()]
    assert (state.step, state.work, state.loaded, state.stopped) == (Step.CALIBRATE, None, True, True)


def test_skip_while_measuring_goes_on_with_estimates() -> None:
    state, effects = walk(measuring(), Skip())
    assert effects == [CancelWork()]
    assert state.step is Step.CALIBRATE
    state, _ = walk(state, Stopped(Work.CALIBRATE))
    assert (state.step, state.measured) == (Step.RESULT, Measured.SKIPPED)
    assert flow.can_next(state)


def test_skip_while_loading_loads_for_the_result() -> None:
    state, effects = walk(at_calibrate(), Skip(), Stopped(Work.LOAD))
    assert effects == [CancelWork(), Load(PATH, False)]
    assert (state.step, state.measured) == (Step.RESULT, Measured.SKIPPED)


def test_skip_after_a_failure() -> None:
    state, _ = walk(measuring(), Failed(Work.CALIBRATE, BROKEN), Skip())
    assert (state.step, state.measured, state.problem) == (Step.RESULT, Measured.SKIPPED, None)


def test_skip_that_came_too_late_keeps_the_measurement() -> None:
    state, _ = walk(measuring(), Skip(), Calibrated(PROFILE))
    assert (state.step, state.measured) == (Step.RESULT, Measured.YES)


def test_failed_loading_for_the_result_is_repeated() -> None:
    state, _ = walk(at_get(), Fetched(PATH), Checked(PROFILE), Failed(Work.LOAD, BROKEN))
    assert not flow.can_next(state)
    assert walk(state, Retry())[1] == [Load(PATH, False)]


def test_back_is_off_while_something_runs() -> None:
    for state in (at_get(), at_calibrate(), measuring()):
        assert walk(state, Back()) == (state, [])


def test_back_to_the_plan_and_on_with_the_same_model_keeps_what_is_loaded() -> None:
    state, effects = walk(at_result(), Back(), Back(), Back(), Next(), Fetched(PATH), Checked(PROFILE))
    assert (state.step, state.work, state.loaded) == (Step.RESULT, None, True)
    assert Unload() not in effects
    assert not any(isinstance(effect, Load) for effect in effects)


def test_another_model_forgets_the_first() -> None:
    state, _ = walk(at_result(), Back(), Back(), Back(), Choose(HUB), Planned(HUB, False))
    assert state.model_path == PATH  # looking at another choice changes nothing yet
    state, effects = walk(state, Next())
    assert effects == [Unload(), RememberChoice(HUB), Fetch(HUB, False)]
    assert (state.model_path, state.loaded, state.measured) == (None, False, Measured.NO)
    assert state.probes == ()


def test_the_folder_can_be_changed_while_the_download_rests() -> None:
    other = Choice(Kind.HUB, HUB.repo_id, Path("/big-disk"))
    state, _ = walk(at_get(HUB), Choose(other))
    assert state.choice == HUB  # not while it runs
    state, effects = walk(state, Stop(), Stopped(Work.FETCH), Choose(other), Retry())
    assert effects[-1] == Fetch(other, False)


def test_another_folder_after_the_download_downloads_again() -> None:
    other = Choice(Kind.HUB, HUB.repo_id, Path("/big-disk"))
    state, _ = walk(at_get(HUB), Fetched(PATH), Checked(None), Stop(), Stopped(Work.LOAD), Back())
    assert flow.can_next(state)
    state, _ = walk(state, Choose(other))
    assert not flow.can_next(state)
    assert flow.can_retry(state)


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
