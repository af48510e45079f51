"""Routing that is set rather than computed: which experts a token gets, for models whose weights are random.

A random router sends every token to the same few experts or to all alike, as chance has it. Benchmarks need
to say how popular experts are and how often a token uses those of the token before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

# Decode steps that are drawn at once. With 32 layers one by one takes 0.7 ms a step, so 14 µs (a Zen 4 core).
_STEPS_AHEAD = 64


class RoutingSource:
    """Random expert ids for each layer and token, a token's ids all distinct; the same ones for a seed.

    `zipf`: the expert of rank r is drawn with a chance proportional to 1 / r ** zipf (0: all alike); ranks
    are shuffled in each layer. `reuse`: the chance that a token gets exactly the experts of the token before
    it in that layer; the others are drawn as if there were none, so popularity stays what `zipf` says.
    `favourites`, bool [layers, experts], get the first ranks of their layers: if they are the experts that
    live on the GPU, the placement is one by popularity. A prompt gets the same experts whether it is read in
    one chunk or in several.
    """

    def __init__(
        self,
        layers: int,
        experts: int,
        top_k: int,
        *,
        zipf: float = 0.0,
        reuse: float = 0.0,
        seed: int = 0,
        favourites: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        if not 1 <= top_k <= experts or layers < 1:
            raise ValueError(f"{top_k} of {experts} experts cannot be chosen in {layers} layers")
        if not 0 <= zipf <= 8 or not 0 <= reuse <= 1:
            raise ValueError(f"no routing has the exponent {zipf} and the reuse {reuse}")
        self.layers, self.experts, self.top_k = layers, experts, top_k
        self.zipf, self.reuse, self.seed = zipf, reuse, seed
        order = np.random.default_rng([seed, layers]).random((layers, experts))
        if favourites is not None:
            order -= favourites
        ranks = order.argsort(axis=1).argsort(axis=1) + 1.0
        chances = ranks**-zipf
        self._chances = (chances / chances.sum(axis=1, keepdims=True)).astype(np.float32)
        self.restart()

    def restart(self) -> None:
        """Begin again: the same calls give the same experts as after the construction."""
        self._generators = [np.random.default_rng([self.seed, layer]) for layer in range(self.layers)]
        # What the last token of each row (sequence) got, [layers, rows, top_k]; a prompt is row 0.
        first = [self._draw(layer, 1)[0] for layer in range(self.layers)]
        self._last: npt.NDArray[np.int32] = np.stack(first)
        self._ahead: Iterator[npt.NDArray[np.int32]] = iter(())
        self._ahead_rows = 0

    def choose(self, layer: int, tokens: int) -> torch.Tensor:
        """The experts of the next `tokens` tokens of a prompt in a layer: int32 [tokens, top_k]."""
        self._ahead = iter(())
        ids, kept = self._draw(layer, tokens)
        ids = _repeated(self._last[layer, :1], ids[:, None], kept[:, None])[:, 0]
        self._last[layer] = ids[-1]
        return torch.from_numpy(ids)

    def next_step(self, batch: int) -> torch.Tensor:
        """The experts of the next token of each of `batch` sequences: int32 [layers, batch, top_k]."""
        if batch < 1:
            raise ValueError("a step has at least one token")
        step = next(self._ahead, None) if batch == self._ahead_rows else None
        if step is None:
            self._ahead, self._ahead_rows = iter(self._draw_steps(batch)), batch
            step = next(self._ahead)
        self._last = step.copy()  # the caller's step must not change with it
        return torch.from_numpy(step)

    def _draw(self, layer: int, count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Experts as if there were no reuse, int32 [count, top_k], and which tokens repeat instead, [count].

        Each expert arrives after an exponentially distributed time with its chance as the rate; the first
        top-k to arrive are a draw without replacement.
        """
        numbers = self._generators[layer].random((count, self.experts + 1), dtype=np.float32)
        times = -np.log1p(-numbers[:, 1:]) / self._chances[layer]
        ids = np.argsort(times, axis=1)[:, : self.top_k]
        return ids.astype(np.int32), numbers[:, 0] < self.reuse

    def _draw_steps(self, batch: int) -> npt.NDArray[np.int32]:
        """Some steps ahead, int32 [steps, layers, batch, top_k]."""
        steps = np.empty((_STEPS_AHEAD, self.layers, batch, self.top_k), dtype=np.int32)
        before = self._last[:, np.minimum(np.arange(batch), self._last.shape[1] - 1)]  # a new row: as row 0
        for layer in range(self.layers):
            ids, kept = self._draw(layer, _STEPS_AHEAD * batch)
            ids = ids.reshape(_STEPS_AHEAD, batch, self.top_k)
            steps[:, layer] = _repeated(before[layer], ids, kept.reshape(_STEPS_AHEAD, batch))
        return steps


def _repeated(
    before: npt.NDArray[np.int32], ids: npt.NDArray[np.int32], kept: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int32]:
    """`ids` [tokens, rows, top_k], where a token that is kept, [tokens, rows], has those of the token before.

    `before` [rows, top_k] are those of the tokens before the first.
    """
    if not kept.any():
        return ids
    own = np.arange(1, len(ids) + 1)[:, None]
    source = np.maximum.accumulate(np.where(kept, 0, own), axis=0)  # the last one that was not kept
    return np.take_along_axis(np.concatenate((before[None], ids)), source[:, :, None], axis=0)
