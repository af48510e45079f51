"""Shows how many tokens there are, and lets messages pass that fit into the model's context."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from app.chat.session import ChatSession
from app.composer.composer import Composer
from app.composer.count import Counted, Question
from app.composer.meter import TokenMeter
from app.composer.room import refusal
from app.engine_factory import TokenCounter
from engine.events import GenerationStats

_SURE = 2_000  # characters; what is shorter passes without waiting for its count


class TokenGate(QObject):
    """Between the composer, which shows the count and says why a message is not sent, and the session."""

    def __init__(self, composer: Composer, session: ChatSession, parent: QObject) -> None:
        super().__init__(parent)
        self._composer, self._session = composer, session
        self._meter = TokenMeter(self._question, self)
        self._meter.counted.connect(self._on_counted)
        self._used: int | None = None  # tokens in the context, while an answer is written to the chat
        self._waiting = ""  # a long message that passes once its tokens are counted
        self._deliver: Callable[[str], object] = lambda message: None
        composer.changed.connect(self._on_changed)
        session.messages_changed.connect(lambda _rows: self.count())
        session.opened.connect(self._forget_used)
        session.parameters.changed.connect(self._on_parameters)
        session.stats.connect(self._on_stats)
        session.busy_changed.connect(self._on_busy)

    def use(self, counter: TokenCounter | None) -> None:
        """Another model counts the tokens, or none."""
        self._meter.use(counter)

    def count(self) -> None:
        """Count soon; where nothing is written there is nothing to show."""
        if not self._composer.content.strip():
            self._composer.show_count(None)
        self._meter.update(busy=self._session.busy)

    def pass_on(self, message: str, deliver: Callable[[str], object]) -> None:
        """Call `deliver` with a message if it fits, as far as that can be known; a long one is counted first.

        It is not delivered if something else is written before it is counted.
        """
        if len(message) > _SURE and self._counted(message) is None and self._meter.count_now():
            self._waiting, self._deliver = message, deliver
        elif self.fits(message):
            deliver(message)

    def fits(self, message: str) -> bool:
        """Whether a message may fit; says why not."""
        counted = self._counted(message)
        why = "" if counted is None else refusal(counted.room, len(counted.files))
        self._composer.refuse(why)
        return not why

    def _counted(self, message: str) -> Counted | None:
        return self._meter.of(message) or self._meter.of(self._composer.content)

    def _question(self) -> Question | None:
        session, message = self._session, self._composer.content
        if session.model is None or not message.strip():
            return None
        rows = () if self._used is not None else tuple(session.messages)
        context = session.model.context_length
        return Question(message, session.system_prompt, rows, context, session.params, self._used)

    @Slot()
    def _on_changed(self) -> None:
        self._waiting = ""
        self.count()

    @Slot(object)
    def _on_stats(self, stats: GenerationStats) -> None:
        chat = self._session.conversation
        if chat is not None and self._session.answering_id == chat.id:
            self._used = stats.context_used

    @Slot()
    def _on_parameters(self) -> None:
        """Another system prompt, or another policy where the context is full."""
        self._used = None
        self.count()

    @Slot()
    def _forget_used(self) -> None:
        self._used = None

    @Slot(bool)
    def _on_busy(self, busy: bool) -> None:
        if not busy:
            self._used = None
            self.count()

    @Slot(object)
    def _on_counted(self, counted: Counted | None) -> None:
        self._composer.show_count(counted)
        message = self._waiting
        if not message or (counted is not None and self._counted(message) is None):
            return  # that was the count of what stood there before
        self._waiting = ""
        if self.fits(message):
            self._deliver(message)
