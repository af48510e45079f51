"""What the panel shows, computed from the engine's figures. Pure numbers and sentences, no widgets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.answers import percent_words, short_number, short_seconds, token_words
from app.i18n import tr, tr_count
from engine.events import ExpertHits, GenerationStats, Place
from engine.status import EngineStatus

DASH = "–"


@dataclass(frozen=True)
class Share:
    """One part of a bar: what it is, how often, and its part of the whole (0 to 1)."""

    label: str
    count: int
    fraction: float
    color: str  # a role of the theme

    @property
    def percent(self) -> str:
        """The part in words: "0%", "under 1%", "43%"."""
        return percent_words(self.fraction)


@dataclass(frozen=True)
class SpeedFigures:
    """The texts of the panel's speed part."""

    now: str = DASH
    average: str = DASH
    first_token: str = DASH
    prompt: str = DASH
    answer: str = DASH


def speed(stats: GenerationStats | None) -> SpeedFigures:
    """Speeds and times of an answer; dashes where nothing is known yet."""
    if stats is None:
        return SpeedFigures()
    prompt = _tight(token_words(stats.prompt_tokens))
    if stats.reused_tokens:
        prompt = tr("{tokens}, {n} of them remembered", tokens=prompt, n=f"{stats.reused_tokens:,}")
    if stats.prefill_seconds > 0:
        prompt += " · " + _tight(short_seconds(stats.prefill_seconds))
    if stats.prefill_tokens_per_second > 0:
        prompt += " · " + _tight(tr("{rate}/s", rate=short_number(stats.prefill_tokens_per_second)))
    answer = _tight(token_words(stats.generated_tokens))
    if stats.decode_seconds > 0:
        answer += " · " + _tight(short_seconds(stats.decode_seconds))
    return SpeedFigures(
        now=_rate(stats.tokens_per_second_now),
        average=_rate(stats.tokens_per_second),
        first_token=short_seconds(stats.time_to_first_token) if stats.time_to_first_token > 0 else DASH,
        prompt=prompt if stats.prompt_tokens else DASH,
        answer=answer if stats.generated_tokens else DASH,
    )


def shares(hits: ExpertHits) -> tuple[Share, ...]:
    """How often experts ran on the GPU, were copied to it, were divided, and ran on the CPU."""
    parts = (
        (Place.GPU, tr("In GPU memory"), "gpu"),
        (Place.STREAMED, tr("Copied to the GPU"), "streamed"),
        (Place.SPLIT, tr("Shared by CPU and GPU"), "split"),
        (Place.CPU, tr("On the CPU"), "cpu"),
    )
    whole = max(1, sum(hits.total(place) for place, _, _ in parts))
    return tuple(
        Share(label, count, count / whole, color)
        for place, label, color in parts
        for count in (hits.total(place),)
    )


def forecast(stats: GenerationStats | None) -> str:
    """How well the planned times of layers agree with the real ones, in a sentence; empty while unknown."""
    if stats is None or stats.prediction_error is None:
        return ""
    percent = round(100 * stats.prediction_error)
    if percent > 0:
        text = tr("Layers are planned to take {n}% longer than they do.", n=percent)
    elif percent < 0:
        text = tr("Layers are planned to take {n}% less time than they do.", n=-percent)
    else:
        text = tr("Layers take as long as planned.")
    if not stats.refits:
        return text
    corrected = tr_count(
        "The measured speeds were corrected {count} time.",
        "The measured speeds were corrected {count} times.",
        stats.refits,
    )
    return f"{text} {corrected}"


@dataclass(frozen=True)
class ExpertGrid:
    """The expert map: uses [layers, experts], by place [layers, experts, 4], and residency [layers, experts].

    `heat` is a use's place between none (0) and the layer's busiest expert (1): layers differ in how many
    experts they use, so a scale over all of them would hide the popular ones.
    """

    uses: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    residency: npt.NDArray[np.bool_]

    @staticmethod
    def of(status: EngineStatus | None, hits: ExpertHits | None) -> ExpertGrid:
        """The map of a loaded model, with the uses so far if they belong to it."""
        residency = np.zeros((0, 0), dtype=np.bool_) if status is None else status.residency
        shape = residency.shape
        if hits is None or hits.counts.shape[1:3] != shape:
            places = np.zeros((*shape, len(Place)), dtype=np.int64)
        else:
            places = hits.counts.sum(axis=0)
        return ExpertGrid(places.sum(axis=-1), places, residency)

    @property
    def layers(self) -> int:
        """Rows of the map."""
        return int(self.uses.shape[0])

    @property
    def experts(self) -> int:
        """Columns of the map."""
        return int(self.uses.shape[1])

    @property
    def heat(self) -> npt.NDArray[np.float64]:
        """[layers, experts] from 0 to 1."""
        busiest = self.uses.max(axis=1, keepdims=True, initial=1)
        heat: npt.NDArray[np.float64] = self.uses / busiest
        return heat

    def describe_cell(self, layer: int, expert: int) -> str:
        """One expert in a sentence, for the tool tip, the line below the map and screen readers."""
        uses = int(self.uses[layer, expert])
        of_layer = max(1, int(self.uses[layer].sum()))
        name = tr("Layer {layer}, expert {expert}", layer=layer + 1, expert=expert + 1)
        where = tr("in GPU memory") if self.residency[layer, expert] else tr("in main memory")
        if uses == 0:
            return tr("{name}: {where}, not chosen in this chat", name=name, where=where)
        gpu, copied, cpu, split = (int(count) for count in self.places[layer, expert])
        text = tr_count(
            "{name}: {where}, chosen {count} time in this chat ({percent}% of its layer)",
            "{name}: {where}, chosen {count} times in this chat ({percent}% of its layer)",
            uses,
            name=name,
            where=where,
            percent=round(100 * uses / of_layer),
        )
        text += tr(" – GPU {gpu}, copied {copied}, CPU {cpu}", gpu=gpu, copied=copied, cpu=cpu)
        return text + tr(", shared by both {split}", split=split) if split else text

    def describe(self) -> str:
        """The whole map in sentences."""
        if not self.layers:
            return tr("No model is loaded.")
        size = tr("{layers} layers of {experts} experts.", layers=self.layers, experts=self.experts)
        resident = int(self.residency.sum())
        held = tr_count("{count} expert is in GPU memory.", "{count} experts are in GPU memory.", resident)
        if not self.uses.any():
            return f"{size} {held}"
        layer, expert = divmod(int(self.uses.argmax()), self.experts)
        busiest = tr("Chosen most: {cell}.", cell=self.describe_cell(layer, expert))
        return f"{size} {held} {busiest}"


def _tight(text: str) -> str:
    """`text` in one piece: a number stays with its unit where lines break."""
    return text.replace(" ", "\u00a0").replace("/", "\u2060/\u2060")


def _rate(value: float) -> str:
    return short_number(value) if value > 0 else DASH
