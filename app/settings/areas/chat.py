"""How new chats are answered, and how the message field behaves."""

from __future__ import annotations

from app.i18n import tr_noop
from app.settings.option import Option

DEFAULT_PRESET = Option(
    "chat.preset",
    "balanced",  # the id of a preset
    tr_noop("Preset of new chats"),
    tr_noop("The system prompt and the parameters that new chats begin with. Each chat can have its own."),
    synonyms_text=tr_noop("temperature sampling system prompt instructions role persona defaults top-p seed"),
)
SEND_ON_ENTER = Option(
    "chat.send_on_enter",
    True,
    tr_noop("Enter sends the message"),
    tr_noop("Shift+Enter then begins a new line. Otherwise Enter begins a line and Ctrl+Enter sends."),
    synonyms_text=tr_noop("return key keyboard shortcut newline submit"),
)
SUGGEST_TITLES = Option(
    "chat.suggest_titles",
    True,
    tr_noop("Let the model name new chats"),
    tr_noop(
        "After the first answer, while the model has nothing else to do. Otherwise the first words serve."
    ),
    synonyms_text=tr_noop("title name rename automatic"),
)
