"""Carries the flow's effects out: asks the worker and the engine, and feeds their answers back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal, Slot

from app.i18n import tr
from app.widgets.background import Background
from app.wizard import flow
from app.wizard.catalog import ENTRIES
from app.wizard.events import (
    Begin,
    Calibrate,
    Calibrated,
    CancelWork,
    Check,
    Checked,
    Detect,
    Detected,
    DetectFailed,
    Effect,
    Event,
    Failed,
    Fetch,
    Fetched,
    Load,
    Loaded,
    Planned,
    Probed,
    Progressed,
    RememberChoice,
    RememberCompleted,
    RememberModel,
    StatusChanged,
    Stopped,
    Unload,
)
from app.wizard.offers import Knowledge, Offer
from app.wizard.state import Choice, FlowState, Kind, Step, Work
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.hardware import Hardware
from engine.options import LoadOptions
from engine.params import GenerationParams
from engine.profile import Probe, Profile
from engine.progress import Progress
from engine.status import EngineStatus

OPERATIONS = {
    "prepare_starter": Work.FETCH,
    "download": Work.FETCH,
    "load": Work.LOAD,
    "calibrate": Work.CALIBRATE,
}


class Memory(Protocol):
    """Where the wizard keeps what it must find again after an interruption."""

    def remember_choice(self, choice: Choice) -> None:
        """Keep what was chosen."""

    def remember_model(self, path: Path, precision: str = "") -> None:
        """Keep the complete model's folder, and the precision that was chosen for it, if one was."""

    def remember_completed(self) -> None:
        """Keep that the wizard is done."""


class WizardController(QObject):
    """Holds the flow's state. Pages read `state` and `offers` and `send` events; `changed`: look again.

    `models_folder` is where downloads go unless the user chooses another place. `options` are the settings
    at the moment of loading; the flow alone decides whether to go on in spite of a shortage.
    """

    changed = Signal()
    trouble = Signal(object)  # EngineError beside the flow: something could not be saved

    def __init__(
        self,
        worker: EngineWorker,
        knowledge: Knowledge,
        memory: Memory,
        options: Callable[[], LoadOptions],
        models_folder: Path,
        visit: FlowState,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.state = visit
        self.models_folder = models_folder
        self._worker, self._knowledge, self._memory, self._options = worker, knowledge, memory, options
        self._offers: dict[Choice, Offer | EngineError] = {}
        self._detection = Background[Hardware](tr("Examining the computer"), self)
        self._check = Background[tuple[Profile | None, str]](tr("Reading the saved calibration"), self)
        self._planners: dict[Choice, Background[Offer]] = {}
        worker.progress.connect(self._on_progress)
        worker.model_ready.connect(self._on_model_ready)
        worker.loaded.connect(self._on_loaded)
        worker.probe.connect(self._on_probe)
        worker.calibrated.connect(self._on_calibrated)
        worker.status_changed.connect(self._on_status)
        worker.failed.connect(self._on_failed)
        worker.cancelled.connect(self._on_cancelled)

    def begin(self) -> None:
        """The wizard is visible now."""
        self.send(Begin())

    def send(self, event: Event) -> None:
        """Let the flow decide about `event`, and do what it asks for."""
        before = self.state
        self.state, effects = flow.advance(before, event)
        for effect in effects:
            self._carry_out(effect)
        if self.state is not before:
            self._plan()
            self.changed.emit()

    @property
    def offers(self) -> Mapping[Choice, Offer | EngineError]:
        """What is known of the choices: the offer, or why it cannot be chosen. A missing one is under way."""
        return self._offers

    @property
    def catalogue(self) -> tuple[Choice, ...]:
        """The models that are offered by name. A hub model keeps the folder that was chosen for it."""
        current = self.state.choice
        choices = []
        for entry in ENTRIES:
            choice = entry.choice()
            if entry.kind is Kind.HUB:
                choice = entry.choice(self.models_folder / entry.repo_id.rsplit("/", 1)[-1])
            if current is not None and (current.kind, current.repo_id) == (choice.kind, choice.repo_id):
                choice = current
            choices.append(choice)
        return tuple(choices)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Detect():
                self._detection.run(self._knowledge.detect, self._on_detected, self._on_detect_failed)
            case Fetch(Choice(Kind.STARTER), force):
                self._worker.prepare_starter(force)
            case Fetch(Choice(Kind.HUB, repo_id, folder), force):
                assert folder is not None
                self._worker.download(repo_id, folder, force)
            case Fetch(Choice(_, _, folder), _):
                assert folder is not None
                self.send(Fetched(folder))
            case Check(path):
                self._start_check(path)
            case Load(path, force):
                self._worker.load(path, replace(self._options(), force=force))
            case Calibrate():
                self._worker.calibrate()
            case CancelWork():
                self._worker.cancel()
            case Unload():
                self._worker.close_model()
            case RememberChoice() | RememberModel() | RememberCompleted():
                self._remember(effect)

    def _remember(self, effect: RememberChoice | RememberModel | RememberCompleted) -> None:
        """Keep something; a full disk is reported, and does not stop the wizard."""
        try:
            match effect:
                case RememberChoice(choice):
                    self._memory.remember_choice(choice)
                case RememberModel(path, precision):
                    self._memory.remember_model(path, precision)
                case RememberCompleted():
                    self._memory.remember_completed()
        except EngineError as error:
            self.trouble.emit(error)

    # What is worked out beside the flow, in other threads.

    def _plan(self) -> None:
        """Work out the offers that the plan page shows and does not have yet."""
        hardware, state = self.state.hardware, self.state
        if hardware is None or state.step is not Step.PLAN:
            return
        wanted = (*self.catalogue, *((state.choice,) if state.choice else ()))
        for choice in dict.fromkeys(wanted):
            offer = self._offers.get(choice)
            if offer is None and choice not in self._planners:
                self._start_plan(choice, hardware)
            elif isinstance(offer, Offer) and choice == state.choice and not state.planned:
                self.send(Planned(choice, offer.short))

    def _start_plan(self, choice: Choice, hardware: Hardware) -> None:
        options = self._options()
        if choice.precision:
            options = replace(options, precision=choice.precision)
        planner = self._planners[choice] = Background[Offer](tr("Planning"), self)

        def on_done(result: Offer | EngineError) -> None:
            del self._planners[choice]
            planner.deleteLater()
            self._offers[choice] = result
            self._plan()
            self.changed.emit()

        planner.run(lambda: self._knowledge.offer(choice, hardware, options), on_done, on_done)

    def _start_check(self, path: Path) -> None:
        hardware, knowledge, options = self.state.hardware, self._knowledge, self._options()

        def work() -> tuple[Profile | None, str]:
            return knowledge.profile(path, hardware or knowledge.detect(quick=True), options)

        self._check.run(
            work,
            lambda found: self.send(Checked(*found)),
            lambda error: self.send(Failed(Work.CHECK, error)),
        )

    def _on_detected(self, hardware: Hardware) -> None:
        self._offers.clear()  # worked out for other figures
        for planner in self._planners.values():
            planner.forget()
            planner.deleteLater()
        self._planners.clear()
        self.send(Detected(hardware))

    def _on_detect_failed(self, error: EngineError) -> None:
        self.send(DetectFailed(error))

    # The worker's answers.

    @Slot(object)
    def _on_progress(self, progress: Progress) -> None:
        self.send(Progressed(progress))

    @Slot(object)
    def _on_model_ready(self, path: Path) -> None:
        self.send(Fetched(path))

    @Slot(object, object)
    def _on_loaded(self, status: EngineStatus, _: GenerationParams) -> None:
        self.send(Loaded(status))

    @Slot(object)
    def _on_probe(self, probe: Probe) -> None:
        self.send(Probed(probe))

    @Slot(object)
    def _on_calibrated(self, profile: Profile) -> None:
        # Where experts lie in a GPU's memory changes when the model is loaded again.
        status = self.state.status
        self.send(Calibrated(profile, reload=status is not None and status.has_gpu))

    @Slot(object)
    def _on_status(self, status: EngineStatus) -> None:
        self.send(StatusChanged(status))

    @Slot(str, object)
    def _on_failed(self, operation: str, error: EngineError) -> None:
        if operation in OPERATIONS:
            self.send(Failed(OPERATIONS[operation], error))

    @Slot(str)
    def _on_cancelled(self, operation: str) -> None:
        if operation in OPERATIONS:
            self.send(Stopped(OPERATIONS[operation]))
