"""What is said about keys: those that belong to a place, and why others cannot be taken."""

from __future__ import annotations

from app.i18n import tr
from app.shortcuts.book import Entry, Fault, Objection, shown


def fixed_entries(*, send_on_enter: bool) -> list[Entry]:
    """Keys that belong to a place of the window; what Enter does in the message field, a setting says."""
    message, chats, panel = tr("In the message field"), tr("In the list of chats"), tr("Elsewhere")
    send, line = ("Return", "Shift+Return") if send_on_enter else ("Ctrl+Return", "Return")
    return [
        Entry("", tr("Send the message"), message, keys=send),
        Entry("", tr("New line"), message, keys=line),
        Entry("", tr("Call an earlier message back"), message, keys="Up"),
        Entry("", tr("Rename the chosen chat"), chats, keys="F2"),
        Entry("", tr("Delete the chosen chat"), chats, keys="Del"),
        Entry("", tr("Stop the answer, or close what is open"), panel, keys="Esc"),
        Entry("", tr("Go to the next part"), panel, keys="Tab"),
        Entry("", tr("Go to the part before"), panel, keys="Shift+Tab"),
    ]


def explain(objection: Objection, keys: str) -> str:
    """Why the keys cannot be taken, and what can be done."""
    pressed, owner = shown(keys), objection.owner
    if objection.fault is Fault.TAKEN and owner is not None:
        return tr("{keys} belong to “{command}” already.", keys=pressed, command=owner.text)
    if owner is not None:
        return tr("{keys} are needed for “{command}”. Press others.", keys=pressed, command=owner.text)
    if objection.fault is Fault.TYPED:
        return tr("{keys} would write or move in a text. Hold Ctrl or Alt as well.", keys=pressed)
    if objection.fault is Fault.MENU:
        return tr("{keys} open a menu. Press others.", keys=pressed)
    return tr("{keys} are needed for editing text. Press others.", keys=pressed)
