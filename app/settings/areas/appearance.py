"""What the window looks like."""

from __future__ import annotations

from app.i18n import tr_noop
from app.settings.option import Choice, Option

THEME = Option(
    "appearance.theme",
    "system",
    tr_noop("Theme"),
    tr_noop("Light, dark, or whatever the desktop uses at the moment."),
    choices=(
        Choice("system", tr_noop("As the desktop")),
        Choice("light", tr_noop("Light")),
        Choice("dark", tr_noop("Dark")),
    ),
)
FONT_SIZE = Option(
    "appearance.font_size",
    0,
    tr_noop("Text size"),
    tr_noop("Size of the text in points. 0 takes the desktop's size."),
    minimum=0,
    maximum=48,
)
PANEL_VISIBLE = Option(
    "panel.visible",
    True,
    tr_noop("Show the live panel"),
    tr_noop("Speed, memory and the map of experts beside the chat."),
)
