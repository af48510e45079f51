"""A preset: a name for a system prompt with parameters; and what a chat has taken from one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from app.i18n import tr
from app.presets.parameters import Parameters

NAME_CHARACTERS = 80  # of a preset's name, at most


@dataclass(frozen=True)
class Preset:
    """`id` stays when it is renamed. Shipped ones cannot be changed, and have their name translated."""

    id: str
    name: str
    system_prompt: str = ""
    parameters: Parameters = field(default_factory=Parameters)
    shipped: bool = False

    @property
    def label(self) -> str:
        """The name as the user reads it."""
        return tr(self.name) if self.shipped else self.name

    @property
    def short(self) -> str:
        """The same where there is little room: without the explanation of a shipped one."""
        return self.label.partition(" (")[0] if self.shipped else self.name


@dataclass(frozen=True)
class ChatSetup:
    """What a chat is answered with. `preset` is the id of the one it began from; values may differ since."""

    preset: str
    system_prompt: str = ""
    parameters: Parameters = field(default_factory=Parameters)


def setup_from(preset: Preset) -> ChatSetup:
    """The beginning of a chat with this preset."""
    return ChatSetup(preset.id, preset.system_prompt, preset.parameters)


def take_preset(setup: ChatSetup, before: Preset | None, chosen: Preset) -> ChatSetup:
    """`setup` after another preset was chosen; `before` is the one it had, if it still exists.

    All values are those of the chosen one. A system prompt that the user wrote for this chat stays if the
    preset has none; one that came from the preset before goes with it.
    """
    written = setup.system_prompt.strip() and (before is None or setup.system_prompt != before.system_prompt)
    if written and not chosen.system_prompt.strip():
        return replace(setup_from(chosen), system_prompt=setup.system_prompt)
    return setup_from(chosen)


def replaces_own(setup: ChatSetup, before: Preset | None, taken: ChatSetup) -> bool:
    """Whether values that the user set are neither those of the preset before nor among the `taken` ones."""
    known = [taken] if before is None else [taken, setup_from(before)]
    prompt = bool(setup.system_prompt.strip()) and setup.system_prompt not in [
        one.system_prompt for one in known
    ]
    return prompt or setup.parameters not in [one.parameters for one in known]


def is_as_preset(setup: ChatSetup, preset: Preset) -> bool:
    """Whether the chat's values are still those of the preset (that without a prompt leaves the chat's)."""
    prompt = setup.system_prompt == preset.system_prompt or not preset.system_prompt.strip()
    return prompt and setup.parameters == preset.parameters
