"""Random walks: whatever user and worker do, in whatever order, the wizard never gets stuck or confused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

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
    Detected,
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

ANY: Any = object()
STATUS: Any = object()
PROFILE: Any = object()
PATHS = {kind: Path(f"/models/{kind}") for kind in Kind}
CHOICES = st.sampled_from(
    [
        Choice(Kind.STARTER),
        Choice(Kind.STARTER, precision="int4"),
        Choice(Kind.HUB, "a/b", Path("/m")),
        Choice(Kind.FOLDER),
    ]
)
ERRORS = st.sampled_from([DownloadError("Broken."), ShortageError("Short."), CheckpointError("Damaged.")])
STARTS = {Fetch: Work.FETCH, Check: Work.CHECK, Load: Work.LOAD, Calibrate: Work.CALIBRATE}
VISITS = st.sampled_from(
    [
        FlowState(),
        resume(Saved(choice=Choice(Kind.STARTER))),
        resume(Saved(Choice(Kind.STARTER), PATHS[Kind.STARTER])),
        resume(Saved(Choice(Kind.STARTER), PATHS[Kind.STARTER], CheckpointError("Gone."))),
        choose_model(Choice(Kind.STARTER), STATUS),
        recalibrate(PATHS[Kind.STARTER], status=STATUS),
        recalibrate(PATHS[Kind.STARTER], status=None),
    ]
)


class Wizard(RuleBasedStateMachine):
    """Plays an honest worker: one work at a time, each ended exactly once, and knows what is in memory."""

    @initialize(state=VISITS, patience=st.integers(3, 15))
    def start(self, state: FlowState, patience: int) -> None:
        self.state = state
        self.patience = patience
        self.running: Work | None = None
        self.fetching: Choice | None = None
        self.in_memory: Path | None = (state.model_path or Path("/models/old")) if state.loaded else None
        self.remembered: Path | None = state.model_path
        self.send(Begin())

    def send(self, event: Event) -> None:
        before = self.state
        self.state, effects = flow.advance(before, event)
        if before.closed or before.finished:
            assert self.state == before
        for effect in effects:
            started = STARTS.get(type(effect))
            if started is not None:
                assert self.running is None, f"{effect} while {self.running} runs"
                self.running = started
            match effect:
                case Fetch(choice):
                    self.fetching = choice
                case Load(path):
                    assert self.in_memory is None
                    self.loading = path
                case Calibrate():
                    assert self.in_memory == self.state.model_path
                case CancelWork():
                    assert self.running is not None
                case Unload():
                    assert self.in_memory is not None
                    self.in_memory = None
                case RememberModel(path):
                    self.remembered = path
                case RememberCompleted():
                    assert self.in_memory is not None

    # Buttons that are on, so that walks get far; `stray` presses the others, too.

    @precondition(lambda self: flow.can_next(self.state))
    @rule()
    def next(self) -> None:
        self.send(Next())

    @precondition(lambda self: flow.can_back(self.state))
    @rule()
    def back(self) -> None:
        self.send(Back())

    @precondition(lambda self: flow.can_retry(self.state))
    @rule()
    def retry(self) -> None:
        self.send(Retry())

    @precondition(lambda self: flow.can_stop(self.state))
    @rule()
    def stop(self) -> None:
        self.send(Stop())
        assert self.state.after is not None

    @precondition(lambda self: flow.can_skip(self.state))
    @rule()
    def skip(self) -> None:
        self.send(Skip())

    @rule(event=st.sampled_from([Next(), Back(), Retry(), Stop(), Skip(), Force(True), Force(False)]))
    def stray(self, event: Event) -> None:
        self.send(event)

    @precondition(lambda self: self.state.step in (Step.PLAN, Step.GET))
    @rule(choice=CHOICES)
    def choose(self, choice: Choice) -> None:
        self.send(Choose(choice))

    @precondition(lambda self: self.state.choice is not None and not self.state.planned)
    @rule(short=st.booleans())
    def plan(self, short: bool) -> None:
        assert self.state.choice is not None
        self.send(Planned(self.state.choice, short))

    @rule(choice=CHOICES, short=st.booleans())
    def late_plan(self, choice: Choice, short: bool) -> None:
        self.send(Planned(choice, short))

    @precondition(lambda self: self.state.hardware is None)
    @rule()
    def detect(self) -> None:
        self.send(Detected(ANY))

    @precondition(lambda self: self.running is Work.CALIBRATE)
    @rule()
    def probe(self) -> None:
        probes = self.state.probes
        self.send(Probed(ANY))
        assert self.state.closed or len(self.state.probes) == len(probes) + 1

    @precondition(lambda self: self.running is not None)
    @rule(reload=st.booleans(), valid=st.booleans())
    def work_succeeds(self, reload: bool, valid: bool) -> None:
        work, self.running = self.running, None
        if work is Work.FETCH:
            assert self.fetching is not None
            self.send(Fetched(PATHS[self.fetching.kind]))
        elif work is Work.CHECK:
            self.send(Checked(PROFILE if valid else None))
        elif work is Work.LOAD:
            self.in_memory = self.loading
            self.send(Loaded(STATUS))
        else:
            self.in_memory = None if reload else self.in_memory
            self.send(Calibrated(PROFILE, reload))

    @precondition(lambda self: self.running is not None)
    @rule(error=ERRORS)
    def work_fails(self, error: DownloadError) -> None:
        work, self.running = self.running, None
        assert work is not None
        self.send(Failed(work, error))

    @precondition(lambda self: self.running in (Work.FETCH, Work.LOAD, Work.CALIBRATE) and self.state.after)
    @rule()
    def work_is_cancelled(self) -> None:
        work, self.running = self.running, None
        assert work is not None
        self.send(Stopped(work))

    @precondition(lambda self: self.patience > 0)
    @rule()
    def look(self) -> None:
        """Only waits; so that closing, which ends a walk, is not drawn too soon."""
        self.patience -= 1

    @precondition(lambda self: self.patience == 0)
    @rule()
    def close(self) -> None:
        self.send(Close())

    @invariant()
    def the_state_knows_what_runs(self) -> None:
        if not self.state.closed:
            assert self.state.work is self.running

    @invariant()
    def the_state_knows_what_is_in_memory(self) -> None:
        assert self.state.loaded == (self.in_memory is not None)
        if self.state.loaded and self.state.step in (Step.CALIBRATE, Step.RESULT):
            assert self.in_memory == self.state.model_path

    @invariant()
    def there_is_always_a_way_on(self) -> None:
        state = self.state
        if state.closed or state.finished:
            return
        waiting = (state.step is Step.COMPUTER and state.hardware is None) or (state.step is Step.PLAN)
        ways = (flow.can_next, flow.can_back, flow.can_retry, flow.can_stop, flow.can_skip)
        assert state.work is not None or waiting or any(way(state) for way in ways)

    @invariant()
    def later_steps_have_a_model(self) -> None:
        state = self.state
        if state.step in (Step.CALIBRATE, Step.RESULT):
            assert state.model_path is not None
            assert state.model_path == self.remembered
        if state.step is Step.RESULT:
            assert state.measured is not Measured.NO

    @invariant()
    def stopping_needs_something_to_stop(self) -> None:
        assert self.state.after is None or self.state.work is not None


Wizard.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
TestWizard = Wizard.TestCase
