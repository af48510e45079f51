"""What is known about an answer, as names and values; and the window that shows it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.answers import figures, sampling_words, search_words, token_words
from app.chat.again import params_again, seed_of
from app.i18n import tr, tr_count
from app.moments import short_moment
from app.presets.words import overflow_short
from app.storage.figures import params_from_json, stats_from_json
from app.storage.rows import MessageRow
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.frames import scrolling
from app.widgets.labels import TextLabel, heading, hint
from engine.events import GenerationStats
from engine.params import GenerationParams

Fact = tuple[str, str]

_SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard


def facts(row: MessageRow, left_out: int) -> list[Fact]:
    """Names and values; `left_out` is how many messages before it the model had not read."""
    params = None if row.params is None else params_from_json(row.params)
    stats = None if row.stats is None else stats_from_json(row.stats, hits=False)
    found: list[Fact] = [
        (tr("Model"), row.model),
        (tr("Begun"), short_moment(row.created)),
        (tr("Version"), _version(row)),
    ]
    if params is not None:
        found += _parameters(params, row)
    if left_out:
        text = tr_count(
            "Written without the first {count} message of the chat",
            "Written without the first {count} messages of the chat",
            left_out,
        )
        found.append((tr("Left out"), text))
    if stats is not None:
        found += _figures(stats)
    return [(name, value) for name, value in found if value]


def _version(row: MessageRow) -> str:
    if len(row.versions) < 2:
        return ""
    return tr("{number} of {count}", number=row.versions.index(row.id) + 1, count=len(row.versions))


def _parameters(params: GenerationParams, row: MessageRow) -> list[Fact]:
    seed = seed_of(row)
    searching = params.beams > 1
    words = search_words(params.beams) if searching else ", ".join(sampling_words(params.sampling))
    drawn = not searching and not params.sampling.greedy
    return [
        (tr("Words chosen by"), words),
        (tr("Seed"), str(seed) if drawn and seed is not None else ""),
        (tr("Longest answer"), token_words(params.max_tokens)),
        (tr("When the context is full"), overflow_short(params.overflow)),
    ]


def _figures(stats: GenerationStats) -> list[Fact]:
    context = ""
    if stats.context_length:
        context = tr(
            "{used} of {length} tokens", used=f"{stats.context_used:,}", length=f"{stats.context_length:,}"
        )
    return [
        (
            tr("Read"),
            token_words(stats.prompt_tokens) if stats.prompt_tokens else "",
        ),
        (tr("Written"), ", ".join(figures(stats))),
        (tr("Context in use after it"), context),
    ]


class DetailsDialog(QDialog):
    """Shows the facts, lets them be copied, and offers to write the answer again."""

    again_requested = Signal()

    def __init__(
        self, row: MessageRow, left_out: int, *, can_answer: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Details of the answer"))
        self.setAccessibleName(tr("Details of the answer"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.facts = facts(row, left_out)
        params = params_again(row)
        drawn = params is not None and params.beams == 1 and not params.sampling.greedy
        words = tr("&Answer again with this seed") if drawn else tr("&Answer again in the same way")
        self.again = push_button(words, self._answer_again, self)
        self.again.setEnabled(can_answer and params is not None)
        self.copy = push_button(tr("&Copy details"), self._copy, self)
        self.close_button = push_button(tr("Close"), self.accept, self, primary=True)
        self.close_button.setDefault(True)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(24, 8, 24, 16)
        buttons.addWidget(self.again)
        buttons.addWidget(self.copy)
        buttons.addStretch(1)
        buttons.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        table = self._table(params is not None)
        area = scrolling(table)
        column.addWidget(area, 1)
        column.addLayout(buttons)
        width = max(self.fontMetrics().averageCharWidth() * 80, buttons.sizeHint().width())
        area.setMinimumWidth(width)
        room = round(self.screen().availableSize().height() * 0.8)
        area.setMinimumHeight(min(table.heightForWidth(width), room))
        self.resize(self.minimumSizeHint())  # the area would like the height of a narrower table
        self.close_button.setFocus()

    def _table(self, known: bool) -> QWidget:
        content = QWidget(self)
        grid = QGridLayout(content)
        grid.setContentsMargins(24, 20, 24, 8)
        grid.setHorizontalSpacing(20)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        grid.addWidget(heading(tr("Details of the answer"), content), 0, 0, 1, 2)
        for line, (name, value) in enumerate(self.facts, 1):
            label = QLabel(name, content)
            mark(label, muted=True)
            text = TextLabel(value, content)
            text.setTextInteractionFlags(_SELECTABLE)
            text.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            text.setAccessibleName(f"{name}: {value}")
            label.setBuddy(text)
            grid.addWidget(label, line, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(text, line, 1)
        if known:
            note = tr(
                "Answered again with these values, the text is the same as long as the model and how it is "
                "loaded, the system prompt and the messages before it are the same."
            )
        else:
            note = tr("It is not known how this answer was drawn, so it cannot be written again.")
        grid.addWidget(hint(note, content), len(self.facts) + 1, 0, 1, 2)
        grid.setRowStretch(len(self.facts) + 2, 1)
        return content

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(f"{name}: {value}" for name, value in self.facts))

    def _answer_again(self) -> None:
        self.again_requested.emit()
        self.accept()
