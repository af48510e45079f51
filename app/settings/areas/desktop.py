"""How the program behaves on the desktop, beside other programs."""

from __future__ import annotations

from app.i18n import tr_noop
from app.settings.option import Option

NOTIFY = Option(
    "desktop.notify",
    True,
    tr_noop("Tell when long work has ended"),
    tr_noop("With a notice of the desktop, if another window is in front: answers, downloads, exports."),
    synonyms_text=tr_noop("notification notify message popup finished"),
)
KEEP_AWAKE = Option(
    "desktop.keep_awake",
    True,
    tr_noop("Keep the computer awake while it works"),
    tr_noop("It does not go to sleep by itself during long work. The screen may still go dark."),
    synonyms_text=tr_noop("sleep suspend standby power energy inhibit"),
)
ANNOUNCE = Option(
    "desktop.announce",
    True,
    tr_noop("Announce sentences to screen readers"),
    tr_noop("As answers are written, one whole sentence after the other. Nothing happens without a reader."),
    synonyms_text=tr_noop("accessibility blind speech voice announce"),
)
