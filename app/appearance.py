"""What the settings say about the window's looks, applied to the program; and the steps of the zoom."""

from __future__ import annotations

from app.i18n import use_language
from app.settings import SettingsStore, registry
from app.theme import theme

ZOOM_STEPS = (50, 67, 80, 90, 100, 110, 125, 150, 175, 200, 250, 300)  # percent, as web browsers have them


def apply_appearance(settings: SettingsStore) -> None:
    """Show the program in the theme, font and zoom that the settings want."""
    theme().apply(
        settings.get(registry.THEME),
        settings.get(registry.FONT_SIZE),
        family=settings.get(registry.FONT_FAMILY),
        zoom=settings.get(registry.ZOOM),
    )


def apply_language(settings: SettingsStore) -> None:
    """Use the language that the settings want; to be called before any text is made."""
    use_language(settings.get(registry.LANGUAGE))


def next_zoom(percent: int, direction: int) -> int:
    """The next step above (`direction` > 0) or below a zoom, which need not be a step itself."""
    if direction > 0:
        return next((step for step in ZOOM_STEPS if step > percent), ZOOM_STEPS[-1])
    return next((step for step in reversed(ZOOM_STEPS) if step < percent), ZOOM_STEPS[0])
