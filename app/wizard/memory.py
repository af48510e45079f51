"""What the wizard keeps in the settings, and what of it can still be used."""

from __future__ import annotations

from dataclasses import replace
from os.path import isdir  # that of pathlib raises for a folder that one may not enter
from pathlib import Path

from app.i18n import tr
from app.settings import SettingsStore, registry
from app.wizard.state import Choice, Kind
from app.wizard.visits import Saved
from engine.errors import CheckpointError
from engine.precision import PRECISIONS

_HUB_PREFIX = "hub:"


class SettingsMemory:
    """Reads and writes the settings. Writing raises `FileError`, and then lasts until the program ends."""

    def __init__(self, settings: SettingsStore) -> None:
        self._settings = settings

    def saved(self) -> Saved:
        """What earlier visits left behind."""
        choice = choice_from(
            self._settings.get(registry.WIZARD_MODEL), self._settings.get(registry.WIZARD_FOLDER)
        )
        precision = self._settings.get(registry.WIZARD_PRECISION)
        if choice is not None and precision in PRECISIONS:
            choice = replace(choice, precision=precision)
        path = self._settings.get(registry.MODEL_PATH)
        if not path:
            return Saved(choice)
        return Saved(choice, Path(path), None if isdir(path) else _gone(Path(path)))

    def remember_choice(self, choice: Choice) -> None:
        """Keep what was chosen.

        A model that is in use stays the one to load until the chosen one is complete; one that is left from
        an unfinished visit does not.
        """
        values = {
            registry.WIZARD_MODEL.key: choice_text(choice),
            registry.WIZARD_FOLDER.key: "" if choice.folder is None else str(choice.folder),
            registry.WIZARD_PRECISION.key: choice.precision,
        }
        if not self._settings.get(registry.WIZARD_COMPLETED):
            values[registry.MODEL_PATH.key] = ""
        self._settings.update(values)

    def remember_model(self, path: Path, precision: str = "") -> None:
        """Keep the complete model's folder; a precision that was chosen for it becomes the setting."""
        values = {registry.MODEL_PATH.key: str(path), registry.WIZARD_PRECISION.key: ""}
        if precision:
            values[registry.PRECISION.key] = precision
        self._settings.update(values)

    def remember_completed(self) -> None:
        """Keep that the wizard is done."""
        self._settings.set(registry.WIZARD_COMPLETED, True)


def is_needed(settings: SettingsStore) -> bool:
    """Whether the wizard has to run before there can be a chat: never finished, or the model is gone."""
    path = settings.get(registry.MODEL_PATH)
    return not (settings.get(registry.WIZARD_COMPLETED) and path and isdir(path))


def choice_text(choice: Choice) -> str:
    """A choice without its folder as one setting's text."""
    return f"{_HUB_PREFIX}{choice.repo_id}" if choice.kind is Kind.HUB else str(choice.kind)


def choice_from(text: str, folder: str) -> Choice | None:
    """The choice that `choice_text` described; None for anything else: settings are edited by hand, too."""
    place = Path(folder) if folder else None
    if text == Kind.STARTER:
        return Choice(Kind.STARTER)
    if text == Kind.FOLDER and place is not None:
        return Choice(Kind.FOLDER, folder=place)
    repo_id = text.removeprefix(_HUB_PREFIX)
    if text.startswith(_HUB_PREFIX) and repo_id and place is not None:
        return Choice(Kind.HUB, repo_id, place)
    return None


def _gone(path: Path) -> CheckpointError:
    return CheckpointError(
        tr("The model is not where it was."),
        why=tr("There is no folder {path} any more.", path=path),
        action=tr("Connect the disk that holds it and start again, or choose a model."),
    )
