"""What is said to the model, and how the message field behaves."""

from __future__ import annotations

from app.i18n import tr_noop
from app.settings.option import Option

SYSTEM_PROMPT = Option(
    "chat.system_prompt",
    "",
    tr_noop("System prompt"),
    tr_noop("What the model is told before each new chat. Chats that exist keep theirs."),
    synonyms_text=tr_noop("instructions role persona character behaviour"),
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
