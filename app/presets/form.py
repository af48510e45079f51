"""A form with everything that decides how a chat is answered: its system prompt and its parameters."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from app.i18n import tr
from app.presets import parameters as options
from app.presets.editors import ChoiceEdit, NumberEdit, SeedEdit
from app.presets.parameters import Parameters, generation_params, may_be_none
from app.presets.preset import ChatSetup
from app.presets.words import answers_words, beams_words, overflow_words
from app.settings.option import Option
from app.theme import mark
from app.widgets.labels import TextLabel, heading, hint
from engine.params import GenerationParams, OverflowPolicy

_DRAWING = (
    options.TEMPERATURE,
    options.TOP_K,
    options.TOP_P,
    options.MIN_P,
    options.REPETITION_PENALTY,
)


class ParametersForm(QWidget):
    """Shows a `ChatSetup` and gives back what was made of it. `changed` after each edit of the user."""

    changed = Signal()

    def __init__(self, defaults: GenerationParams | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._defaults = defaults
        self._preset = ""
        self.prompt = QPlainTextEdit(self)
        self.numbers: dict[str, NumberEdit] = {}
        self.seed = SeedEdit(options.SEED, self)
        self.overflow = ChoiceEdit(options.OVERFLOW, self)
        self._seed_fault = TextLabel(parent=self)
        mark(self._seed_fault, tone="error")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        self._lay_out()
        for number in self.numbers.values():
            number.edited.connect(self._on_edited)
        self.seed.edited.connect(self._on_edited)
        self.overflow.edited.connect(self._on_edited)
        self.prompt.textChanged.connect(self._on_edited)
        self.show_setup(ChatSetup(""))

    @property
    def setup(self) -> ChatSetup:
        """What the form says."""
        numbers: dict[str, Any] = {name: editor.number for name, editor in self.numbers.items()}
        parameters = Parameters(
            **numbers, seed=self.seed.number, overflow=OverflowPolicy(self.overflow.chosen)
        )
        return ChatSetup(self._preset, self.prompt.toPlainText(), parameters)

    @property
    def fault(self) -> str:
        """What has to be mended before the values can be used; empty if nothing."""
        return self.seed.complaint

    def show_setup(self, setup: ChatSetup) -> None:
        """Show other values."""
        with QSignalBlocker(self):
            self._preset = setup.preset
            if self.prompt.toPlainText() != setup.system_prompt:
                self.prompt.setPlainText(setup.system_prompt)
            for name, editor in self.numbers.items():
                editor.show_number(getattr(setup.parameters, name))
            self.seed.show_number(setup.parameters.seed)
            self.overflow.show_choice(setup.parameters.overflow)
        self._show_consequences()

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 4, 24, 12)
        column.setSpacing(8)
        label = heading(tr("System prompt"), self)
        self.prompt.setTabChangesFocus(True)
        self.prompt.setPlaceholderText(tr("For example: Answer briefly, and say so when you are not sure."))
        self.prompt.setAccessibleName(tr("System prompt"))
        self.prompt.setAccessibleDescription(tr("What the model is told before the chat."))
        self.prompt.setFixedHeight(self.fontMetrics().height() * 6)
        column.addWidget(label)
        column.addWidget(self.prompt)
        column.addWidget(hint(tr("What the model is told before the chat."), self))
        column.addSpacing(6)
        column.addLayout(self._grid)
        self._group(tr("How words are chosen"))
        for option in _DRAWING:
            self._number(option)
        self._row(options.SEED.label, self.seed, options.SEED.help)
        self._grid.addWidget(self._seed_fault, self._grid.rowCount(), 1)
        self._group(tr("How much is written"))
        self._number(options.MAX_TOKENS)
        self._answers_words = self._number(options.ANSWERS)
        self._beams_words = self._number(options.BEAMS)
        self._group(tr("When the chat outgrows the context"))
        self._overflow_words = self._row(tr("What gives way"), self.overflow, "")
        column.addStretch(1)

    def _group(self, words: str) -> None:
        row = self._grid.rowCount()
        label = heading(words, self)
        label.setContentsMargins(0, 12 if row > 1 else 0, 0, 2)
        self._grid.addWidget(label, row, 0, 1, 2)

    def _number(self, option: Option[Any]) -> QLabel:
        editor = NumberEdit(option, self, optional=may_be_none(option.name))
        if may_be_none(option.name):
            editor.set_own(self._own_words(option.name))
        self.numbers[option.name] = editor
        return self._row(option.label, editor, option.help)

    def _row(self, words: str, editor: QWidget, explanation: str) -> QLabel:
        """A line of the form; returns the text below its editor."""
        row = self._grid.rowCount()
        label = QLabel(words, self)
        label.setBuddy(editor)
        label.setContentsMargins(0, 5, 0, 0)
        editor.setMinimumHeight(round(self.fontMetrics().height() * 1.7))
        editor.setMinimumWidth(self.fontMetrics().averageCharWidth() * 36)
        below = hint(explanation, self)
        below.setContentsMargins(0, 0, 0, 6)
        self._grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(editor, row, 1, Qt.AlignmentFlag.AlignLeft)
        self._grid.addWidget(below, row + 1, 1)
        return below

    def _own_words(self, name: str) -> str:
        if self._defaults is None:
            return tr("The model's own")
        own = self._defaults.max_tokens if name == "max_tokens" else getattr(self._defaults.sampling, name)
        return tr("The model's own: {value}", value=f"{own:g}")

    def _on_edited(self) -> None:
        self._show_consequences()
        self.changed.emit()

    def _show_consequences(self) -> None:
        parameters = self.setup.parameters
        params = generation_params(parameters, self._defaults or GenerationParams())
        greedy = params.sampling.greedy
        self._beams_words.setText(f"{options.BEAMS.help} {beams_words(parameters.beams)}")
        self._answers_words.setText(answers_words(parameters.answers, parameters.beams, greedy))
        self._overflow_words.setText(f"{overflow_words(parameters.overflow)} {options.OVERFLOW.help}")
        self._seed_fault.setText(self.seed.complaint)
        self._seed_fault.setVisible(bool(self.seed.complaint))
        for name in ("temperature", "top_k", "top_p", "min_p"):
            self.numbers[name].setEnabled(parameters.beams == 1)
        self.seed.setEnabled(parameters.beams == 1)
