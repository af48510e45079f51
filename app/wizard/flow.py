"""The wizard's rules: which step follows which, what each button may do, and what happens on every event.

`advance(state, event)` is pure: it returns the next state and the effects that a shell must carry out
(`app.wizard.controller` does, tests do it by hand). Events that make no sense in a state (a button that is
off, a late answer of work that has ended) leave it unchanged, so that races between the worker thread and
the user are harmless.
"""

from __future__ import annotations

from dataclasses import replace

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
    Effect,
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
    StatusChanged,
    Stop,
    Stopped,
    Unload,
)
from app.wizard.state import After, Choice, FlowState, Kind, Measured, Step, Work
from engine.errors import EngineError, ShortageError

Outcome = tuple[FlowState, tuple[Effect, ...]]


# --- What the buttons may do --------------------------------------------------------------------------------


def can_next(state: FlowState) -> bool:
    """Whether this step is complete."""
    if state.work is not None or state.finished or state.closed:
        return False
    match state.step:
        case Step.COMPUTER:
            return state.hardware is not None
        case Step.PLAN:
            return state.choice is not None and state.planned and (state.force or not state.short)
        case Step.GET:
            return state.model_path is not None
        case Step.CALIBRATE:
            return state.measured is Measured.YES
        case Step.RESULT:
            return state.loaded


def can_back(state: FlowState) -> bool:
    """Whether there is an earlier step and nothing is running."""
    return state.work is None and state.step != state.steps[0] and not (state.finished or state.closed)


def can_stop(state: FlowState) -> bool:
    """Whether something long is running that was not asked to stop yet."""
    return state.work in (Work.FETCH, Work.LOAD, Work.CALIBRATE) and state.after is None


def can_retry(state: FlowState) -> bool:
    """Whether this step's work can be started, continued or repeated."""
    if state.work is not None or state.finished or state.closed:
        return False
    match state.step:
        case Step.COMPUTER:
            return True
        case Step.PLAN:
            return False
        case Step.GET:
            return state.choice is not None and state.model_path is None
        case Step.CALIBRATE:
            return True
        case Step.RESULT:
            return not state.loaded


def can_skip(state: FlowState) -> bool:
    """Whether calibration can be left out: not when calibrating is all that this visit is for."""
    return (
        state.step is Step.CALIBRATE
        and Step.PLAN in state.steps
        and state.measured is not Measured.YES
        and state.after is None
        and not (state.finished or state.closed)
    )


# --- What happens -------------------------------------------------------------------------------------------


def advance(state: FlowState, event: Event) -> Outcome:
    """The state after `event`, and what is to be done."""
    if state.closed or state.finished:
        return state, ()
    match event:
        case Begin():
            return _begin(state)
        case Next() | Back() | Retry() | Stop() | Skip() | Close() | Force() | Choose():
            return _user(state, event)
        case Detected(hardware):
            return replace(state, hardware=hardware, problem=_unless_at(state, Step.COMPUTER)), ()
        case DetectFailed(error):
            return (replace(state, problem=error) if state.step is Step.COMPUTER else state), ()
        case Planned(choice, short):
            return (replace(state, planned=True, short=short) if choice == state.choice else state), ()
        case Progressed(progress):
            return (replace(state, progress=progress) if state.work is not None else state), ()
        case Probed(probe):
            running = state.work is Work.CALIBRATE
            return (replace(state, probes=(*state.probes, probe)) if running else state), ()
        case StatusChanged(status):
            return (replace(state, status=status) if state.loaded else state), ()
        case Failed(work, error):
            return (_failed(state, error), ()) if work is state.work else (state, ())
        case Stopped(work):
            return _ended(replace(state, stopped=True)) if work is state.work else (state, ())
        case Fetched() | Checked() | Loaded() | Calibrated():
            return _worked(state, event)


def _begin(state: FlowState) -> Outcome:
    """The first page appears."""
    if state.step is Step.GET and state.model_path is not None:
        return replace(state, work=Work.CHECK), (Detect(), Check(state.model_path))
    if state.step is Step.CALIBRATE:
        state, effects = _enter(state, Step.CALIBRATE)
        return state, (Detect(), *effects)
    return state, (Detect(),)


def _user(state: FlowState, event: Event) -> Outcome:
    """A button, where it is on."""
    match event:
        case Next() if can_next(state):
            return _next(state)
        case Back() if can_back(state):
            earlier = state.steps[state.steps.index(state.step) - 1]
            return replace(state, step=earlier, problem=None, stopped=False, eager=True), ()
        case Retry() if can_retry(state):
            return _retry(state)
        case Stop() if can_stop(state):
            return replace(state, after=After.STAY), (CancelWork(),)
        case Skip() if can_skip(state):
            if state.work is None:
                return _enter(replace(state, measured=Measured.SKIPPED), Step.RESULT)
            return replace(state, after=After.SKIP), (CancelWork(),)
        case Close():
            if state.work in (None, Work.CHECK):
                return replace(state, closed=True), ()
            effects = (CancelWork(),) if state.after is None else ()
            return replace(state, after=After.CLOSE), effects
        case Force(on):
            short = isinstance(state.problem, ShortageError)
            state = replace(state, force=on)
            return _retry(state) if on and short and can_retry(state) else (state, ())
        case Choose(choice) if state.step in (Step.PLAN, Step.GET) and state.work is None:
            if choice == state.choice:
                return state, ()
            kept = state.model_path if choice == state.got else None
            chosen = replace(state, choice=choice, planned=False, short=False, force=False, problem=None)
            return (replace(chosen, model_path=kept) if state.step is Step.GET else chosen), ()
        case _:
            return state, ()


def _next(state: FlowState) -> Outcome:
    match state.step:
        case Step.COMPUTER:
            # Nothing chosen yet: the starter model, which suits every computer and everybody new to this.
            return _enter(replace(state, choice=state.choice or Choice(Kind.STARTER)), Step.PLAN)
        case Step.PLAN:
            return _fetch(replace(state, eager=True))
        case Step.GET:
            assert state.model_path is not None
            return replace(state, work=Work.CHECK, eager=True), (Check(state.model_path),)
        case Step.CALIBRATE:
            return _enter(state, Step.RESULT)
        case Step.RESULT:
            return replace(state, finished=True), (RememberCompleted(),)


def _fetch(state: FlowState) -> Outcome:
    """Get the chosen model. One that is there already is found at once; another one is forgotten first."""
    choice = state.choice
    assert choice is not None  # Next and Retry are off without one
    effects: tuple[Effect, ...] = ()
    if choice != state.got:
        if state.loaded:
            effects = (Unload(),)
        state = replace(
            state,
            got=None,
            model_path=None,
            status=None,
            measured=Measured.NO,
            profile=None,
            note="",
            probes=(),
        )
    fresh = replace(state, step=Step.GET, work=Work.FETCH, progress=None, problem=None, stopped=False)
    return fresh, (*effects, RememberChoice(choice), Fetch(choice, state.force))


def _retry(state: FlowState) -> Outcome:
    match state.step:
        case Step.COMPUTER:
            return replace(state, hardware=None, problem=None), (Detect(),)
        case Step.GET:
            return _fetch(replace(state, eager=True))
        case _:
            return _enter(replace(state, eager=True), state.step)


def _enter(state: FlowState, step: Step) -> Outcome:
    """Go to `step` and start its work, if it has any that is still to be done."""
    state = replace(state, step=step, problem=None, stopped=False, progress=None)
    load = step is Step.RESULT or (step is Step.CALIBRATE and state.eager)
    if load and not state.loaded:
        assert state.model_path is not None
        return replace(state, work=Work.LOAD), (Load(state.model_path, state.force),)
    if step is Step.CALIBRATE and state.eager:
        return replace(state, work=Work.CALIBRATE, probes=()), (Calibrate(),)
    return state, ()


def _worked(state: FlowState, event: Event) -> Outcome:
    """The running work has ended well; what comes next follows, unless stopping was asked for meanwhile."""
    match event:
        case Fetched(path) if state.work is Work.FETCH:
            remember = RememberModel(path, state.choice.precision if state.choice else "")
            state = replace(state, model_path=path, got=state.choice)
            if state.after is not None:
                state, effects = _ended(state)
                return state, (remember, *effects)
            return replace(state, work=Work.CHECK, progress=None), (remember, Check(path))
        case Checked(profile, note) if state.work is Work.CHECK:
            measured = Measured.NO if profile is None else Measured.YES
            state = replace(state, work=None, measured=measured, profile=profile, note=note)
            return _enter(state, Step.CALIBRATE if profile is None else Step.RESULT)
        case Loaded(status) if state.work is Work.LOAD:
            stop = state.after is not None
            state, effects = _ended(replace(state, status=status, stopped=stop))
            if stop or state.step is not Step.CALIBRATE:
                return state, effects
            return _enter(state, Step.CALIBRATE)
        case Calibrated(profile, reload) if state.work is Work.CALIBRATE:
            kept = None if reload else state.status
            return _ended(replace(state, measured=Measured.YES, profile=profile, note="", status=kept))
        case _:
            return state, ()


def _ended(state: FlowState) -> Outcome:
    """Nothing runs any more: do what was asked for meanwhile."""
    after = state.after
    state = replace(state, work=None, after=None, progress=None)
    match after:
        case After.CLOSE:
            return replace(state, closed=True), ()
        case After.SKIP:
            skipped = state.measured if state.measured is Measured.YES else Measured.SKIPPED
            return _enter(replace(state, measured=skipped), Step.RESULT)
        case _:
            return state, ()


def _failed(state: FlowState, error: EngineError) -> FlowState:
    """The work broke off. A model that turned out unreadable has to be got again."""
    closed = state.after is After.CLOSE
    path = None if state.work is Work.CHECK else state.model_path
    return replace(state, work=None, after=None, progress=None, problem=error, closed=closed, model_path=path)


def _unless_at(state: FlowState, step: Step) -> EngineError | None:
    """The shown problem, unless it is about `step`, which has just succeeded."""
    return None if state.step is step else state.problem
