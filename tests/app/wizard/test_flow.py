"""Walks through the wizard's state machine: the way to the chat, and every detour."""

from __future__ import annotations

from pathlib import Path

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
from engine.errors import CheckpointError
from engine.progress import Progress
from tests.app.wizard.walks import (
    BROKEN,
    HARDWARE,
    HUB,
    PATH,
    PROBE,
    PROFILE,
    SHORT,
    STARTER,
    STATUS,
    at_calibrate,
    at_get,
    at_plan,
    at_result,
    measuring,
    walk,
)


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
