"""The presets that come with the program. Their ids are kept in chats: they never change."""

from __future__ import annotations

from app.i18n import tr_noop
from app.presets.parameters import Parameters
from app.presets.preset import Preset
from engine.params import OverflowPolicy

BALANCED = Preset("balanced", tr_noop("Balanced (the model's own values)"), shipped=True)

SHIPPED: tuple[Preset, ...] = (
    BALANCED,
    Preset(
        "precise",
        tr_noop("Precise"),
        parameters=Parameters(temperature=0.2, top_p=0.9),
        shipped=True,
    ),
    Preset(
        "creative",
        tr_noop("Creative"),
        parameters=Parameters(temperature=1.1, top_p=1.0, min_p=0.05),
        shipped=True,
    ),
    Preset(
        "code",
        tr_noop("Code"),
        # A penalty would hit brackets and names, which have to be repeated.
        system_prompt=(
            "You are a careful programmer. Answer with complete, correct code in Markdown code blocks, and "
            "explain briefly what matters. Say so when you are not sure."
        ),
        parameters=Parameters(temperature=0.2, top_p=0.95, repetition_penalty=1.0, max_tokens=4096),
        shipped=True,
    ),
    Preset(
        "long",
        tr_noop("Long conversation"),
        parameters=Parameters(overflow=OverflowPolicy.DROP_OLDEST),
        shipped=True,
    ),
    Preset(
        "search",
        tr_noop("Likeliest answer (beam search)"),
        parameters=Parameters(beams=4),
        shipped=True,
    ),
)
