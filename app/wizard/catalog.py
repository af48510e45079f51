"""The models that the wizard offers by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.i18n import tr_noop
from app.wizard.state import Choice, Kind
from engine import known_models
from engine.checkpoint.inspect import ModelInfo


@dataclass(frozen=True)
class Entry:
    """One offer: how it is called, what to expect of it, and its size. Texts are marked for `tr`."""

    kind: Kind
    name: str
    description: str
    info: Callable[[Path], ModelInfo]  # what `inspect_model` will say once the model is in this folder
    repo_id: str = ""

    def choice(self, folder: Path | None = None) -> Choice:
        """The choice of this model, stored in `folder`."""
        return Choice(self.kind, self.repo_id, folder)


STARTER_ENTRY = Entry(
    Kind.STARTER,
    tr_noop("Starter model (135 M, for trying things out)"),
    tr_noop("Ready in about a minute, small enough for every computer. Its answers are simple, often wrong."),
    known_models.starter,
)
MIXTRAL_ENTRY = Entry(
    Kind.HUB,
    tr_noop("Mixtral-8x7B-Instruct"),
    tr_noop(
        "Good answers in many languages. A large download, and it needs a computer with a lot of memory."
    ),
    known_models.mixtral_8x7b,
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
)
ENTRIES = (STARTER_ENTRY, MIXTRAL_ENTRY)


def entry_of(choice: Choice) -> Entry | None:
    """The catalogue's entry of a choice; None for a folder."""
    if choice.kind is Kind.FOLDER:
        return None
    return next((e for e in ENTRIES if e.kind is choice.kind and e.repo_id == choice.repo_id), None)
