import math
from typing import Any

import pytest

from app import i18n
from app.settings import BY_KEY, OPTIONS, Choice, Option, SettingsError

# The keys that other parts of the program and saved files rely on, and the type of each.
KEYS = {
    "appearance.theme": str,
    "appearance.font_family": str,
    "appearance.font_size": int,
    "appearance.zoom": int,
    "appearance.language": str,
    "appearance.reduced_motion": bool,
    "chat.preset": str,
    "chat.send_on_enter": bool,
    "chat.suggest_titles": bool,
    "engine.policy": str,
    "engine.precision": str,
    "engine.exact_activations": bool,
    "engine.vram_budget_gib": float,
    "engine.threads": int,
    "engine.context_length": int,
    "engine.ram_reserve_gib": float,
    "desktop.notify": bool,
    "desktop.keep_awake": bool,
    "desktop.announce": bool,
    "model.path": str,
    "wizard.completed": bool,
    "wizard.model": str,
    "wizard.folder": str,
    "wizard.precision": str,
    "panel.visible": bool,
    "export.format": str,
    "export.system_prompt": bool,
    "export.settings": bool,
    "export.statistics": bool,
    "export.branches": bool,
    "export.folder": str,
    "window.geometry": str,
    "window.state": str,
    "shortcuts.changed": str,
}


def test_the_registry_has_every_setting_once() -> None:
    assert {option.key: type(option.default) for option in OPTIONS} == KEYS
    assert len(OPTIONS) == len(BY_KEY)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_every_setting_is_sound(option: Option[Any]) -> None:
    assert option.check(option.default) == option.default
    assert option.section
    assert option.name
    assert "." not in option.name
    assert bool(option.label_text) == bool(option.help_text) == option.visible
    assert len({choice.value for choice in option.choices}) == len(option.choices)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("appearance.theme", "pink"),
        ("appearance.theme", 1),
        ("appearance.font_size", 12.0),
        ("appearance.font_size", True),
        ("appearance.font_size", -1),
        ("chat.send_on_enter", 1),
        ("chat.send_on_enter", "true"),
        ("chat.preset", None),
        ("engine.vram_budget_gib", math.nan),
        ("engine.vram_budget_gib", math.inf),
        ("engine.vram_budget_gib", "0.5"),
        ("engine.vram_budget_gib", False),
        ("engine.vram_budget_gib", 4096.5),
        ("engine.ram_reserve_gib", -0.1),
        ("engine.threads", 1025),
        ("engine.threads", []),
        ("engine.policy", ""),
        ("engine.precision", "int3"),
    ],
)
def test_wrong_values_are_refused_with_what_is_allowed(key: str, value: object) -> None:
    option = BY_KEY[key]
    with pytest.raises(SettingsError) as caught:
        option.check(value)
    assert option.label in caught.value.what
    assert option.allowed in caught.value.action


def test_a_whole_number_will_do_where_a_float_is_wanted() -> None:
    value = BY_KEY["engine.vram_budget_gib"].check(1)
    assert value == 1
    assert type(value) is float


def test_labels_are_translated_when_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    option = Option("a.b", "x", "Theme", "Help", choices=(Choice("x", "Light"),))

    class Shouting:
        def gettext(self, text: str) -> str:
            return text.upper()

    monkeypatch.setattr(i18n, "_catalogue", Shouting())
    assert (option.label, option.help, option.choices[0].label) == ("THEME", "HELP", "LIGHT")
    assert Option("window.state", "").label == ""  # gettext("") would answer with its file's header
