"""What the window looks like."""

from __future__ import annotations

from app.i18n import tr_noop
from app.settings.option import Choice, Option

THEME = Option(
    "appearance.theme",
    "system",
    tr_noop("Theme"),
    tr_noop("“As the desktop” changes with it. High contrast is easier to read for eyes that need it."),
    choices=(
        Choice("system", tr_noop("As the desktop")),
        Choice("light", tr_noop("Light")),
        Choice("dark", tr_noop("Dark")),
        Choice("contrast_light", tr_noop("High contrast, light")),
        Choice("contrast_dark", tr_noop("High contrast, dark")),
    ),
    synonyms_text=tr_noop("colours colors night mode black white accessibility vision"),
)
FONT_FAMILY = Option(
    "appearance.font_family",
    "",
    tr_noop("Font"),
    tr_noop("For all text but code, which keeps the desktop's fixed-width font."),
    synonyms_text=tr_noop("typeface letters family"),
)
FONT_SIZE = Option(
    "appearance.font_size",
    0,
    tr_noop("Text size"),
    tr_noop("Size of the text in points. 0 takes the desktop's size."),
    minimum=0,
    maximum=48,
    synonyms_text=tr_noop("font bigger smaller larger letters points"),
)
ZOOM = Option(
    "appearance.zoom",
    100,
    tr_noop("Zoom"),
    tr_noop("Enlarges text, buttons and icons together: also Ctrl+plus, Ctrl+minus and Ctrl+0."),
    minimum=50,
    maximum=300,
    synonyms_text=tr_noop("scale size bigger smaller larger enlarge percent"),
)
LANGUAGE = Option(
    "appearance.language",
    "system",
    tr_noop("Language"),
    tr_noop("Of menus, buttons and messages, from the next start on. The model answers in any it knows."),
    synonyms_text=tr_noop("translation English locale"),
)
REDUCED_MOTION = Option(
    "appearance.reduced_motion",
    False,
    tr_noop("Reduce motion"),
    tr_noop("Nothing slides, fades or blinks: what changes is there at once."),
    synonyms_text=tr_noop("animation accessibility blinking scrolling effects"),
)
PANEL_VISIBLE = Option(
    "panel.visible",
    True,
    tr_noop("Show the live panel"),
    tr_noop("Speed, memory and the map of experts beside the chat. Hidden, it costs nothing."),
    synonyms_text=tr_noop("statistics figures side bar monitor heat"),
)
