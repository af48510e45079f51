"""Beam search: which continuations live on, and which finished answers are the best.

The rules are those of transformers' `generate(num_beams=…)`, so that both find the same answers with the same
scores: float32 sums of log-probabilities, candidates of all beams compared together, enough of them that the
beams go on even if every end token is among the best, a finished answer's score divided by its length to the
power of the penalty, and a stop once the best live beam can no longer displace the worst finished answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.params import GenerationParams

_NEVER = -1.0e9  # a score that loses to every real one


@dataclass(frozen=True)
class Hypothesis:
    """An answer's tokens, with the one that ends it, and its score."""

    tokens: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Candidates:
    """The best continuations of all beams by one token, best first: summed log-probabilities float32, [n]."""

    scores: torch.Tensor
    parents: list[int]
    tokens: list[int]


class BeamSearch:
    """The state of one search: `beams` live answers, and up to as many finished ones, best first.

    `tokens` are the live answers, best first; `done` tells that the search has ended. Each token is two
    calls: `propose` says what could come, `accept` is told which of that ends an answer.
    """

    def __init__(self, params: GenerationParams, prompt: Sequence[int], end_tokens: int) -> None:
        self._params = params
        self._prompt = prompt
        self._beams = params.beams
        # A beam has at most `end_tokens` candidates that end it: enough others remain.
        self._width = max(2, 1 + end_tokens) * params.beams
        self.tokens: list[list[int]] = [[] for _ in range(params.beams)]
        self.done = False
        # The beams are equal at first: only one may propose, or they would stay equal.
        self._scores = torch.full((params.beams,), _NEVER)
        self._scores[0] = 0.0
        self._finished: list[Hypothesis | None] = [None] * params.beams
        self._finished_scores = torch.full((params.beams,), _NEVER)
        self._seen: torch.Tensor | None = None  # bool [beams, vocabulary], for the repetition penalty

    @property
    def finished(self) -> list[Hypothesis]:
        """The finished answers, best first."""
        return [answer for answer in self._finished if answer is not None]

    @property
    def length(self) -> int:
        """Tokens of each live answer."""
        return len(self.tokens[0])

    def propose(self, logits: torch.Tensor) -> Candidates:
        """The best continuations, given the next token's logits, float32 [beams, vocabulary]."""
        scores = self._penalised(torch.log_softmax(logits, dim=-1)) + self._scores[:, None]
        best, places = scores.view(1, -1).topk(min(self._width, scores.numel()))
        vocabulary = logits.shape[1]
        return Candidates(best[0], (places[0] // vocabulary).tolist(), (places[0] % vocabulary).tolist())

    def accept(self, candidates: Candidates, ends: Sequence[bool]) -> list[int]:
        """Keep the best candidates that go on, and those that end if they belong to the best answers.

        Returns, for each new beam, the index of its candidate.
        """
        ending = torch.tensor(ends)
        going_on = candidates.scores + ending * _NEVER
        chosen = going_on.topk(self._beams).indices
        answers = [
            [*self.tokens[parent], token]
            for parent, token in zip(candidates.parents, candidates.tokens, strict=True)
        ]
        # What ends here counts only if it is among the best: the candidates further down are spare.
        among_best = torch.arange(len(ending)) < self._beams
        self._merge(answers, candidates.scores, ending & among_best)
        self._scores = going_on[chosen]
        indices: list[int] = chosen.tolist()
        self.tokens = [answers[index] for index in indices]
        if self._seen is not None:
            self._seen = self._seen[[candidates.parents[index] for index in indices]]
            self._seen[torch.arange(self._beams), [tokens[-1] for tokens in self.tokens]] = True
        self.done = self._is_done(all(ends))
        return indices

    def close(self) -> None:
        """End the search here: the live answers count as finished."""
        self._merge(self.tokens, self._scores, self._scores > _NEVER / 2)
        self.done = True

    def _merge(self, answers: Sequence[Sequence[int]], scores: torch.Tensor, ending: torch.Tensor) -> None:
        """Put those of the answers, all of the same length, that are `ending` among the finished ones."""
        scored = self._normalised(scores, len(answers[0])) + ~ending * _NEVER
        merged = torch.cat((self._finished_scores, scored))
        places = merged.topk(self._beams).indices
        self._finished_scores = merged[places]
        new = [
            Hypothesis(tuple(answer), score) if ends else None
            for answer, score, ends in zip(answers, scored.tolist(), ending.tolist(), strict=True)
        ]
        both = self._finished + new
        self._finished = [both[place] for place in places.tolist()]

    def _is_done(self, all_end: bool) -> bool:
        full = None not in self._finished
        worst = self._finished_scores.min().item() if full else _NEVER
        can_improve = self._normalised(self._scores[0], self.length).item() > worst
        return not can_improve or (full and self._params.early_stopping) or all_end

    def _normalised(self, scores: torch.Tensor, length: int) -> torch.Tensor:
        normalised: torch.Tensor = scores / length**self._params.length_penalty
        return normalised

    def _penalised(self, log_probabilities: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of tokens that a beam or the prompt has, multiplied by the repetition penalty."""
        penalty = self._params.sampling.repetition_penalty
        if penalty == 1:
            return log_probabilities
        if self._seen is None:
            self._seen = torch.zeros_like(log_probabilities, dtype=torch.bool)
            self._seen[:, list(self._prompt)] = True
        return torch.where(self._seen, log_probabilities * penalty, log_probabilities)


def common_length(answers: Sequence[Sequence[int]], agreed: int) -> int:
    """How many tokens all `answers` have in common at their start, `agreed` of which are known to be."""
    shortest = min(len(answer) for answer in answers)
    while agreed < shortest and all(answer[agreed] == answers[0][agreed] for answer in answers):
        agreed += 1
    return agreed
