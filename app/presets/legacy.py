"""The settings of versions that had no presets become a preset of the user's, which new chats take."""

from __future__ import annotations

from typing import Any

from app.i18n import tr
from app.presets.parameters import BY_NAME, Parameters
from app.presets.preset import ChatSetup
from app.presets.store import PresetStore
from app.settings import SettingsError, SettingsStore
from engine.errors import EngineError

# What those versions took where the file said nothing.
_DEFAULTS: dict[str, Any] = {
    "temperature": 0.7,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "max_tokens": 1024,
}
_PROMPT, _MODELS_OWN, _SEED = "chat.system_prompt", "sampling.use_model_defaults", "sampling.seed"
_KEYS = (_PROMPT, _MODELS_OWN, _SEED, *(f"sampling.{name}" for name in _DEFAULTS))


def take_over_settings(settings: SettingsStore, presets: PresetStore) -> None:
    """Make the preset if there is anything to keep, then drop the old settings.

    What cannot be saved is told in `presets.problems`, and tried again at the next start.
    """
    if all(settings.stored(key) is None for key in _KEYS):
        return
    prompt = settings.stored(_PROMPT)
    setup = ChatSetup("", prompt if isinstance(prompt, str) else "", _parameters(settings))
    try:
        if setup != ChatSetup(""):
            preset = presets.add(presets.free_name(tr("My settings")), setup)
            presets.set_default(preset.id)
        settings.forget(_KEYS)
    except EngineError as error:
        presets.problems.append(error)


def _parameters(settings: SettingsStore) -> Parameters:
    values: dict[str, Any] = {}
    if settings.stored(_MODELS_OWN) is False:
        values = {name: _usable(settings, name, default) for name, default in _DEFAULTS.items()}
    seed = _usable(settings, "seed", None)  # −1 stood for a new one each time
    return Parameters(**values, seed=seed)


def _usable(settings: SettingsStore, name: str, default: Any) -> Any:
    stored = settings.stored(f"sampling.{name}")
    if stored is None:
        return default
    try:
        return BY_NAME[name].check(stored)
    except SettingsError:
        return default
