"""Answers to conversations: prompts made of messages or raw text, and the way they are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from engine.accounting import TimeAccount
from engine.context import Sent, messages_to_send
from engine.errors import GenerationError
from engine.events import Event, ExpertHits, Prediction, TurnsDropped
from engine.generation.batch import generate_batch
from engine.generation.beam_loop import generate_beams
from engine.generation.chat_template import is_begun
from engine.generation.loop import generate
from engine.generation.request import Request
from engine.generation.tokenizer import Tokenizer
from engine.params import GenerationParams, Message
from engine.progress import CancelToken
from engine.session import Session

_T = TypeVar("_T")


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
        write = generate if params.beams == 1 else generate_beams
        if isinstance(prompt, str):
            return write(self.session, self._request(prompt, params, cancel, started))
        sent = self._sent(prompt, params)
        events = write(self.session, self._request(sent.messages, params, cancel, started))
        return _after(_told(sent), events)

    def answer_together(
        self,
        conversations: Sequence[Sequence[Message]],
        params: Sequence[GenerationParams],
        cancel: CancelToken | None,
        started: float,
    ) -> Iterator[tuple[int, Event]]:
        """Answer independent conversations; see Engine.generate_batch."""
        each = [self._sent(messages, one) for messages, one in zip(conversations, params, strict=True)]
        requests = [
            self._request(sent.messages, one, cancel, started) for sent, one in zip(each, params, strict=True)
        ]
        told = [(index, event) for index, sent in enumerate(each) for event in _told(sent)]
        return _after(told, generate_batch(self.session, requests))

    def _sent(self, messages: Sequence[Message], params: GenerationParams) -> Sent:
        """What of a conversation is read, by the policy for one that is too long."""
        return messages_to_send(
            messages, params, self.session.capacity, lambda some: len(self._tokenizer.encode_chat(some))
        )

    def _request(
        self,
        prompt: Sequence[Message] | str,
        params: GenerationParams,
        cancel: CancelToken | None,
        started: float,
    ) -> Request:
        self._account.pause()
        after_text = bool(prompt) and (isinstance(prompt, str) or is_begun(prompt[-1]))
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


def _told(sent: Sent) -> list[Event]:
    return [TurnsDropped(sent.dropped)] if sent.dropped else []


def _after(first: Sequence[_T], events: Iterator[_T]) -> Iterator[_T]:
    """`first` and then `events`; unlike a chain of both this can be closed, which ends the generation."""
    yield from first
    yield from events


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
