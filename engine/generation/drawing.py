"""One answer that is drawn token by token: its sampler, its text, and what ends it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.events import Event, Finished, FinishReason, TextDelta
from engine.generation.meter import Meter
from engine.generation.request import Request, message_for
from engine.generation.sampling import Sampler
from engine.generation.stopping import LoopDetector, StopStrings
from engine.session import Logits


@dataclass(frozen=True)
class Drawn:
    """The next token, the text that may now be shown, and why the answer ends here, if it does."""

    token: int
    text: str
    reason: FinishReason | None


class DrawnAnswer:
    """Draws the tokens of one request's answer from its own logits, whatever else the model does beside it.

    `context_length` is the most tokens that the prompt and the answer may be together.
    """

    def __init__(self, request: Request, meter: Meter, context_length: int) -> None:
        self._params = request.params
        self._meter = meter
        self._context_length = context_length
        self._ends = request.ends
        self._sampler = Sampler(request.params.sampling)
        self._sampler.see(list(request.prompt))
        self._loops = LoopDetector() if request.params.stop_loops else None
        self._text = request.new_text()
        self._stops = StopStrings(request.params.stop)

    @property
    def seed(self) -> int | None:
        """What the answer can be repeated with; None when it is greedy."""
        return self._sampler.seed

    def draw(self, logits: Logits, used: int) -> Drawn:
        """The token after `used` tokens whose keys are in the cache. EOS itself is not part of the answer.

        Raises GenerationError if the logits are not usable numbers.
        """
        token = self._sampler.draw(logits)
        if token in self._ends:
            return Drawn(token, "", FinishReason.EOS)
        in_loop = self._loops is not None and self._loops.push(token)
        self._meter.token()
        self._sampler.see([token])
        text, stopped = self._stops.push(self._text.push(token))
        reason = None
        if stopped:
            reason = FinishReason.STOP_STRING
        elif in_loop:
            reason = FinishReason.LOOP
        elif self._meter.generated >= self._params.max_tokens:
            reason = FinishReason.LENGTH
        elif used >= self._context_length:
            reason = FinishReason.CONTEXT_FULL
        return Drawn(token, text, reason)

    def finish(self, reason: FinishReason, used: int) -> list[Event]:
        """The last events: text still held back, which may come to a stop string after all, and the end."""
        rest = ""
        if reason is not FinishReason.STOP_STRING:
            rest, stopped = self._stops.push(self._text.flush())
            rest += self._stops.flush()
            reason = FinishReason.STOP_STRING if stopped else reason
        message = message_for(reason, self._params, self._context_length)
        finished = Finished(reason, self._meter.stats(used, self._sampler.seed), message)
        return [TextDelta(rest), finished] if rest else [finished]
