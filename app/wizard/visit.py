"""How the rest of the program opens the wizard: the first time, for another model, to calibrate again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.dialogs import show_error
from app.paths import models_dir
from app.settings import SettingsStore, is_as_set, load_options, registry
from app.wizard import visits
from app.wizard.controller import WizardController
from app.wizard.dialog import WizardDialog
from app.wizard.knowledge import RealKnowledge
from app.wizard.memory import SettingsMemory, is_needed
from app.wizard.offers import Knowledge
from app.wizard.state import FlowState
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.status import EngineStatus

__all__ = ["choose_model", "is_needed", "recalibrate", "set_up"]


def set_up(
    worker: EngineWorker,
    settings: SettingsStore,
    parent: QWidget | None = None,
    knowledge: Knowledge | None = None,
) -> WizardDialog:
    """The first visit, or what is left of it. When it is accepted, the model is loaded in `worker`."""
    state = visits.resume(SettingsMemory(settings).saved())
    return _dialog(worker, settings, state, parent, knowledge)


def choose_model(
    worker: EngineWorker,
    settings: SettingsStore,
    status: EngineStatus | None,
    parent: QWidget | None = None,
    knowledge: Knowledge | None = None,
) -> WizardDialog:
    """Choose another model; `status` is that of the loaded one, if any.

    When it is rejected after the loaded model had to make room, the one that the settings name is loaded
    again: the worker's signals tell. If the new one could not be loaded, that is the earlier one, in the
    precision that it had.
    """
    memory = SettingsMemory(settings)
    earlier, precision = settings.get(registry.MODEL_PATH), settings.get(registry.PRECISION)
    state = visits.choose_model(memory.saved().choice, status)
    dialog = _dialog(worker, settings, state, parent, knowledge)

    def load_again() -> None:
        end = dialog.controller.state
        if status is None or end.loaded:
            return
        now = settings.get(registry.MODEL_PATH), settings.get(registry.PRECISION)
        if end.problem is not None and earlier and now != (earlier, precision):
            try:
                memory.remember_model(Path(earlier), precision)
            except EngineError as error:
                show_error(parent, error)
        path = settings.get(registry.MODEL_PATH)
        if path:
            worker.load(Path(path), load_options(settings))

    dialog.rejected.connect(load_again)
    return dialog


def recalibrate(
    worker: EngineWorker,
    settings: SettingsStore,
    model: Path,
    status: EngineStatus | None,
    parent: QWidget | None = None,
    knowledge: Knowledge | None = None,
) -> WizardDialog:
    """Measure again with the model in `model`; `status` is not None if it is loaded. Starts at once.

    A model that was loaded before the settings changed is loaded again first.
    """
    loaded = worker.load_options
    if loaded is not None and not is_as_set(loaded, settings):
        status = None
    return _dialog(worker, settings, visits.recalibrate(model, status), parent, knowledge)


def _dialog(
    worker: EngineWorker,
    settings: SettingsStore,
    state: FlowState,
    parent: QWidget | None,
    knowledge: Knowledge | None,
) -> WizardDialog:
    controller = WizardController(
        worker,
        knowledge or RealKnowledge(),
        SettingsMemory(settings),
        partial(load_options, settings),
        models_dir(),
        state,
    )
    return WizardDialog(controller, parent)
