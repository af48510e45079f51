"""The engine's answers to the wizard: hardware, plans, saved profiles. Torch-free, called in pool threads."""

from __future__ import annotations

from pathlib import Path

from app.i18n import tr
from app.wizard.catalog import entry_of
from app.wizard.offers import Offer
from app.wizard.state import Choice, Kind
from engine import starter
from engine.budget import download_requirements
from engine.checkpoint.inspect import ModelInfo, inspect_model
from engine.errors import CheckpointError
from engine.hardware import Hardware
from engine.hardware.detect import detect
from engine.hardware.memory import detect_disk
from engine.options import LoadOptions
from engine.plan import make_plan
from engine.profile import Profile
from engine.profile_store import ProfileState, find_profile_for
from engine.requirements import Need, Resource


class RealKnowledge:
    """Asks the engine; see `app.wizard.offers.Knowledge`."""

    def detect(self, *, quick: bool = False) -> Hardware:
        """This computer; unless `quick`, with the memory's speed measured (about half a second)."""
        return detect(measure_memory=not quick)

    def offer(self, choice: Choice, hardware: Hardware, options: LoadOptions) -> Offer:
        """The plan of a choice, from a saved profile if there is one, and the disk space still needed."""
        info, disk = _located(choice)
        profile = None
        if disk is None:
            profile = find_profile_for(options, hardware, info).profile
        plan = make_plan(hardware, info, options, profile)
        return Offer(choice, info, plan, disk)

    def profile(self, model: Path, hardware: Hardware, options: LoadOptions) -> tuple[Profile | None, str]:
        """The valid profile, or None and why an earlier one is not valid."""
        found = find_profile_for(options, hardware, inspect_model(model))
        return found.profile, "" if found.state is ProfileState.MISSING else found.message


def _located(choice: Choice) -> tuple[ModelInfo, Need | None]:
    """The choice's facts, and the disk space that getting it takes; None if it is here already."""
    entry = entry_of(choice)
    if entry is None:
        assert choice.folder is not None
        return _chat_model(choice.folder), None
    if choice.kind is Kind.STARTER:
        folder = starter.starter_dir()
        if starter.is_ready():
            return inspect_model(folder), None
        return entry.info(folder), starter.requirements().need(Resource.DISK)
    assert choice.folder is not None
    try:
        return inspect_model(choice.folder), None
    except CheckpointError:  # not there, or not all of it yet
        info, already = entry.info(choice.folder), _bytes_in(choice.folder)
    disk = download_requirements(detect_disk(choice.folder), info.name, info.total_bytes, already=already)
    return info, disk.need(Resource.DISK)


def _chat_model(folder: Path) -> ModelInfo:
    """The facts of a model in a folder that the user chose, if it can be loaded and chats.

    All that can be refused is refused here, before the model that is loaded makes room for it.
    """
    from engine.generation.tokenizer import Tokenizer  # here: the wizard is to open quickly

    info = inspect_model(folder)
    if not Tokenizer.of_model(info).can_chat:
        raise CheckpointError(
            tr("This model cannot chat."),
            why=tr("Its folder has no chat template, so the form of a conversation is not known."),
            action=tr("Choose an instruct (chat) model."),
        )
    return info


def _bytes_in(folder: Path) -> int:
    """What an interrupted download has left in `folder`."""
    if not folder.is_dir():
        return 0
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
