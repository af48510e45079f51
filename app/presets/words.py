"""What parameters mean, in words: the consequence of a value, and a chat's values in a sentence. Pure."""

from __future__ import annotations

from app.answers import sampling_words
from app.i18n import tr, tr_count
from app.presets.parameters import OVERFLOW, Parameters, generation_params
from engine.params import GenerationParams, OverflowPolicy


def beams_words(beams: int) -> str:
    """What a number of beams costs."""
    if beams == 1:
        return tr("1 is off: words are drawn one after the other, as set above.")
    return tr(
        "Each word takes as long as for {n} answers that are written together, and the answer needs up to "
        "{n} times its length in the context. The text appears as far as all beams agree. Temperature, "
        "top-k, top-p, min-p and the seed have no effect.",
        n=beams,
    )


def answers_words(answers: int, beams: int, greedy: bool) -> str:
    """What a number of answers costs."""
    if answers == 1:
        return tr("One answer to each question.")
    if beams > 1:
        return tr_count(
            "The best {count} answer of the search, without more work.",
            "The best {count} answers of the search, as versions of the message, without more work.",
            min(answers, beams),
        )
    if greedy:
        return tr("At temperature 0 all answers would be the same: there will be one.")
    return tr(
        "Written together, as versions of the message: slower than one, faster than one after the other, as "
        "an expert is read once for all. Each needs room for the whole chat in the context; those without it "
        "wait their turn."
    )


def overflow_words(policy: OverflowPolicy) -> str:
    """What a policy means for the chat."""
    if policy is OverflowPolicy.STOP:
        return tr(
            "Nothing is left out. An answer ends where the context is full, and the next question is refused "
            "with a message."
        )
    line = tr("A line in the chat shows from where on the model sees it.")
    if policy is OverflowPolicy.DROP_OLDEST:
        text = tr(
            "The model forgets the oldest turns, about a quarter of the context at a time. It then reads the "
            "rest anew once: the first word of that answer comes later."
        )
    else:
        text = tr("The model forgets all other turns at once, and the first word comes soon.")
    return f"{text} {line}"


def overflow_short(policy: OverflowPolicy) -> str:
    """The policy's name."""
    return next(choice.label for choice in OVERFLOW.choices if choice.value == policy)


def values_words(parameters: Parameters, defaults: GenerationParams | None) -> list[str]:
    """The values in short texts; those of the model only where they are known."""
    params = generation_params(parameters, defaults or GenerationParams())
    parts = []
    if params.beams > 1:
        parts.append(tr_count("{count} beam", "{count} beams", params.beams))
    elif defaults is not None or parameters.temperature is not None:
        parts += sampling_words(params.sampling, parameters.seed)
    else:
        parts.append(tr("the model's own values"))
    if defaults is not None or parameters.max_tokens is not None:
        parts.append(tr("at most {count} tokens", count=f"{params.max_tokens:,}"))
    if parameters.answers > 1:
        parts.append(tr_count("{count} answer", "{count} answers", parameters.answers))
    if parameters.overflow is not OverflowPolicy.STOP:
        parts.append(tr("context full: {policy}", policy=overflow_short(parameters.overflow)))
    return parts


def recommended(defaults: GenerationParams | None) -> str:
    """The model's own values in a sentence."""
    if defaults is None:
        return tr("The values of the model are known once it is loaded.")
    parts = values_words(Parameters(), defaults)
    if defaults.stop_loops:
        parts.append(tr("an answer that repeats itself is ended"))
    return tr("This model recommends: {values}.", values=", ".join(parts))
