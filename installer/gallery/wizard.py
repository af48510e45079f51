"""Scenes of the wizard: every page, on a laptop and on a workstation, and its troubles."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

from app.settings import load_options, registry
from app.wizard.controller import WizardController
from app.wizard.dialog import WizardDialog
from app.wizard.memory import SettingsMemory
from app.wizard.pages.plan import PlanPage
from app.wizard.state import Step
from app.wizard.visits import resume
from engine.errors import EngineError
from engine.hardware import Hardware
from installer.gallery import samples
from installer.gallery.studio import Scene, Shot, Studio
from tests.app.wizard_fakes import (
    HIDDEN_CARD,
    LAPTOP,
    WORKSTATION,
    ScriptedKnowledge,
    make_probes,
    make_profile,
)


def laptop(studio: Studio) -> Iterator[Shot]:
    """All pages on a computer without a graphics card."""
    yield from _pages(studio, LAPTOP, "laptop")


def workstation(studio: Studio) -> Iterator[Shot]:
    """All pages on a computer with one."""
    studio.factory.status = samples.workstation()
    yield from _pages(studio, WORKSTATION, "workstation")


def troubles(studio: Studio) -> Iterator[Shot]:
    """A card that cannot be used; a model that could not be made."""
    studio.factory.starter_error = EngineError(
        "The starter model could not be made.",
        why="The disk is full: 0.4 GB are free, and 1.6 GB are needed.",
        action="Free some space, or choose another folder for models in the settings.",
    )
    dialog = _open(studio, HIDDEN_CARD)
    yield Shot("wizard-hidden-card", dialog)
    _choose(studio, dialog)
    dialog.next.click()
    studio.wait(lambda: dialog.controller.state.problem is not None)
    studio.settle(0.3)
    yield Shot("wizard-problem", dialog)


def _pages(studio: Studio, hardware: Hardware, name: str) -> Iterator[Shot]:
    factory, gpu = studio.factory, bool(hardware.gpus)
    factory.probes = list(make_probes(gpu))  # type: ignore[arg-type]
    factory.profile = replace(make_profile(gpu, layers=factory.status.layers))
    factory.download_gate, factory.calibrate_gate = threading.Event(), threading.Event()
    dialog = _open(studio, hardware)
    yield Shot(f"wizard-{name}-computer", dialog)
    _choose(studio, dialog)
    yield Shot(f"wizard-{name}-plan", dialog)
    dialog.next.click()
    studio.settle(0.4)
    yield Shot(f"wizard-{name}-get", dialog)
    factory.download_gate.set()
    studio.wait(lambda: dialog.controller.state.step is Step.CALIBRATE)
    studio.settle(0.4)
    yield Shot(f"wizard-{name}-calibrate", dialog)
    factory.calibrate_gate.set()
    studio.wait(dialog.next.isEnabled)
    studio.settle(0.3)
    yield Shot(f"wizard-{name}-calibrated", dialog)
    dialog.next.click()
    studio.wait(lambda: dialog.controller.state.step is Step.RESULT)
    studio.settle(0.4)
    yield Shot(f"wizard-{name}-result", dialog)
    yield Shot(f"wizard-{name}-result-small", dialog, (dialog.minimumWidth(), dialog.minimumHeight()))


def _open(studio: Studio, hardware: Hardware) -> WizardDialog:
    studio.settings.set(registry.MODEL_PATH, "")
    studio.settings.set(registry.WIZARD_COMPLETED, False)
    models = studio.folder / "models"
    studio.factory.model_folder = models / "starter"
    studio.factory.model_folder.mkdir(parents=True)
    memory = SettingsMemory(studio.settings)
    controller = WizardController(
        studio.worker,
        ScriptedKnowledge(hardware),
        memory,
        lambda: load_options(studio.settings),
        models,
        resume(memory.saved()),
    )
    dialog = WizardDialog(controller)
    dialog.show()
    dialog.activateWindow()
    studio.wait(dialog.next.isEnabled)
    studio.settle(0.3)
    return dialog


def _choose(studio: Studio, dialog: WizardDialog) -> None:
    """Go to the plan and choose the first model there."""
    dialog.next.click()
    studio.wait(lambda: dialog.controller.state.step is Step.PLAN)
    page = dialog.pages[Step.PLAN]
    assert isinstance(page, PlanPage)
    studio.wait(lambda: page.cards[0].radio.isEnabled())
    page.cards[0].radio.click()
    studio.wait(dialog.next.isEnabled)
    studio.settle(0.3)


SCENES: tuple[Scene, ...] = (laptop, workstation, troubles)
