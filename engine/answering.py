"""Answers to conversations: prompts made of messages or raw text, and the way they are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.accounting import TimeAccount
from engine.errors import GenerationError
from engine.events import Event, ExpertHits, Prediction
from engine.generation.batch import generate_batch
from engine.generation.beam_loop import generate_beams
from engine.generation.loop import generate
from engine.generation.request import Request
from engine.generation.tokenizer import Tokenizer
from engine.params import GenerationParams, Message
from engine.progress import CancelToken
from engine.session import Session


class Answerer:
    """Answers with one session's model.

    `closing` tells that everything has to end; `hits` returns the model's running total of executions,
    `account` has that of the time of decode steps, `prediction` tells how well layers were foretold lately.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        eos_ids: frozenset[int],
        session: Session,
        hits: Callable[[], ExpertHits],
        account: TimeAccount,
        closing: Callable[[], bool],
        prediction: Callable[[], Prediction] = Prediction,
    ) -> None:
        self.session = session
        self._tokenizer = tokenizer
        self._eos_ids = eos_ids
        self._hits = hits
        self._account = account
        self._closing = closing
        self._prediction = prediction

    def answer(
        self,
        prompt: Sequence[Message] | str,
        params: GenerationParams,
        cancel: CancelToken | None,
        started: float,
    ) -> Iterator[Event]:
        """Answer a conversation, or continue a text as it is; see Engine.generate."""
        request = self._request(prompt, params, cancel, started)
        write = generate if params.beams == 1 else generate_beams
        return write(self.session, request)

    def answer_together(
        self,
        conversations: Sequence[Sequence[Message]],
        params: Sequence[GenerationParams],
        cancel: CancelToken | None,
        started: float,
    ) -> Iterator[tuple[int, Event]]:
        """Answer independent conversations; see Engine.generate_batch."""
        requests = [
            self._request(messages, one, cancel, started)
            for messages, one in zip(conversations, params, strict=True)
        ]
        return generate_batch(self.session, requests)

    def _request(
        self,
        prompt: Sequence[Message] | str,
        params: GenerationParams,
        cancel: CancelToken | None,
        started: float,
    ) -> Request:
        self._account.pause()
        after_text = bool(prompt) and (isinstance(prompt, str) or prompt[-1].role == "assistant")
        encoded = (
            self._tokenizer.encode(prompt) if isinstance(prompt, str) else self._tokenizer.encode_chat(prompt)
        )
        return Request(
            prompt=encoded,
            params=params,
            eos_ids=self._eos_ids,
            new_text=lambda: self._tokenizer.stream(after_text=after_text),
            hits=self._hits,
            cancelled=lambda: self._closing() or (cancel is not None and cancel.cancelled),
            started=started,
            time_split=self._account.snapshot,
            prediction=self._prediction,
        )


def params_for_each(
    params: GenerationParams | Sequence[GenerationParams], conversations: int
) -> list[GenerationParams]:
    """One's own parameters for each conversation that is answered together with others.

    Raises:
        GenerationError: beam search is asked for.
        ValueError: there are more or fewer parameters than conversations.
    """
    each = [params] * conversations if isinstance(params, GenerationParams) else list(params)
    if len(each) != conversations:
        raise ValueError(f"there are {len(each)} parameters for {conversations} conversations")
    if any(one.beams > 1 for one in each):
        raise GenerationError(
            "Beam search answers one conversation at a time.",
            action="Ask one after the other, or set beams to 1.",
        )
    return each
