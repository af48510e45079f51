"""The text of answers that are still being searched: what is certain is told, stop strings end a beam."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from engine.generation.stopping import LoopDetector, StopStrings
from engine.generation.tokenizer import TokenStream
from engine.params import GenerationParams


def text_of(
    tokens: Sequence[int], new_text: Callable[[], TokenStream], stops: Sequence[str]
) -> tuple[str, bool]:
    """The whole text of an answer up to a stop string, and whether there was one."""
    told = AgreedText(new_text(), GenerationParams(stop=tuple(stops)))
    text = told.extend(tokens)
    return text + told.end(), told.stopped


class AgreedText:
    """The text of tokens that every beam has, so that it can be shown although the search goes on.

    `stopped` tells whether it has come to a stop string, `looped` whether it repeats itself where that ends
    answers.
    """

    def __init__(self, text: TokenStream, params: GenerationParams) -> None:
        self._text = text
        self._stops = StopStrings(params.stop)
        self._loops = LoopDetector() if params.stop_loops else None
        self.tokens = 0
        self.stopped = self.looped = False

    def extend(self, tokens: Sequence[int]) -> str:
        """Take the next tokens; return the text that may now be shown."""
        shown = ""
        for token in tokens:
            if self.stopped:
                break
            self.tokens += 1
            if self._loops is not None and self._loops.push(token):
                self.looped = True
            more, self.stopped = self._stops.push(self._text.push(token))
            shown += more
        return shown

    def end(self) -> str:
        """The text still held back, at the end of the answer."""
        if self.stopped:
            return ""
        text, self.stopped = self._stops.push(self._text.flush())
        return text + self._stops.flush()


class StopWatch:
    """Finds out which continuations of the beams complete a stop string; without any, it costs nothing."""

    def __init__(self, new_text: Callable[[], TokenStream], stops: Sequence[str], beams: int) -> None:
        self._stops = bool(stops)
        first = (new_text(), StopStrings(stops))
        self._beams = [first] * beams
        self._candidates: list[tuple[TokenStream, StopStrings]] = []

    def ends(self, parents: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """For each candidate, a beam and its next token, whether a stop string is now complete."""
        if not self._stops:
            return [False] * len(tokens)
        self._candidates, ended = [], []
        for parent, token in zip(parents, tokens, strict=True):
            text, stops = self._beams[parent][0].fork(), copy.copy(self._beams[parent][1])
            ended.append(stops.push(text.push(token))[1])
            self._candidates.append((text, stops))
        return ended

    def accept(self, chosen: Sequence[int]) -> None:
        """The candidates that become the beams."""
        if self._stops:
            self._beams = [self._candidates[index] for index in chosen]
