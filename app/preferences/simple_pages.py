"""The pages that are little more than rows of settings: answers, system prompt and chats."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.answers import sampling_words
from app.i18n import tr
from app.preferences.page import SettingsPage
from app.settings import SettingsStore, registry
from app.widgets.buttons import push_button
from engine.params import GenerationParams

_OWN_VALUES = (
    registry.TEMPERATURE,
    registry.TOP_K,
    registry.TOP_P,
    registry.MIN_P,
    registry.REPETITION_PENALTY,
    registry.MAX_TOKENS,
)


class AnswersPage(SettingsPage):
    """How the next word is chosen, how long answers may get, and whether they can be repeated."""

    def __init__(
        self, settings: SettingsStore, defaults: GenerationParams | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(tr("Answers"), settings, parent)
        self.add_hint(tr("Changes apply from the next answer on."))
        self.add_option(registry.USE_MODEL_DEFAULTS)
        self.recommended = self.add_hint(recommended(defaults))
        for option in _OWN_VALUES:
            self.add_option(option)
        self.add_option(registry.SEED, automatic=tr("A new one each time"))
        self.content.addStretch(1)
        self.follow_settings(self._show_use)
        self._show_use()

    def _show_use(self) -> None:
        """The user's own values can be edited only where they are used; the seed always is."""
        own = not self.settings.get(registry.USE_MODEL_DEFAULTS)
        for option in _OWN_VALUES:
            self.editors[option.key].setEnabled(own)


def recommended(defaults: GenerationParams | None) -> str:
    """The model's own values in a sentence."""
    if defaults is None:
        return tr("The values of the model are known once it is loaded.")
    parts = sampling_words(defaults.sampling)
    parts.append(tr("at most {count} tokens", count=defaults.max_tokens))
    if defaults.stop_loops:
        parts.append(tr("an answer that repeats itself is ended"))
    return tr("This model recommends: {values}.", values=", ".join(parts))


class PromptPage(SettingsPage):
    """The system prompt of new chats."""

    def __init__(self, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(tr("System prompt"), settings, parent)
        editor = self.add_option(registry.SYSTEM_PROMPT)
        assert isinstance(editor, QPlainTextEdit)
        editor.setPlaceholderText(tr("For example: Answer briefly, and say so when you are not sure."))
        editor.setMinimumHeight(editor.fontMetrics().height() * 8)
        self.clear = push_button(tr("C&lear"), editor.clear, self)
        self.content.addWidget(self.clear, 0, Qt.AlignmentFlag.AlignLeft)


class ChatsPage(SettingsPage):
    """How the message field behaves, and what chats do by themselves."""

    def __init__(self, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(tr("Chats"), settings, parent)
        self.add_option(registry.SEND_ON_ENTER)
        self.add_option(registry.SUGGEST_TITLES)
        self.content.addStretch(1)
