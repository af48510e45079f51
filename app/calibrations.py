"""Two calibrations compared in words and figures. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from app.i18n import tr
from app.moments import long_date, short_moment
from app.precision import precision_label
from engine.profile import Profile
from engine.units import format_seconds

_SAME = 0.03  # calibrations of an unchanged computer differ by about as much


@dataclass(frozen=True)
class Row:
    """One line of a comparison: what it is about, its value in each calibration, and the change in words."""

    name: str
    first: str
    second: str
    change: str = ""


def compare(first: Profile, second: Profile) -> list[Row]:
    """What tells two calibrations apart, the figures first; `change` is how the second differs."""
    return [
        *_speeds(first, second),
        *_times(first, second),
        Row(tr("Precision of experts"), precision_label(first.precision), precision_label(second.precision)),
        Row(tr("Experts on the graphics card"), str(first.expert_slots), str(second.expert_slots)),
        *_parts(first.hardware, second.hardware),
        Row(tr("Fingerprint of the computer"), first.fingerprint[0], second.fingerprint[0]),
        Row(tr("Model"), first.model_name, second.model_name, _other(first.model, second.model)),
    ]


def verdict(first: Profile, second: Profile) -> str:
    """The comparison in a sentence or two."""
    before, after = first.measured_tokens_per_second, second.measured_tokens_per_second
    change = _change(before, after, more=tr("faster"), less=tr("slower"))
    text = tr(
        "The second measured {after} tokens per second, the first {before}: {change}.",
        after=f"{after:.1f}",
        before=f"{before:.1f}",
        change=change,
    )
    if first.model != second.model:
        text += " " + tr("They are of different models, so the figures say little about each other.")
    elif first.hardware != second.hardware:
        text += " " + tr("The computer was not the same, or was used in another way.")
    elif first.precision != second.precision:
        text += " " + tr("The experts were held in another precision.")
    if first.doubtful or second.doubtful:
        which = tr("the second") if second.doubtful else tr("the first")
        text += " " + tr("Other programs may have disturbed {which}: its prediction missed.", which=which)
    return text


def moment_text(created: str, *, long: bool = False) -> str:
    """A calibration's time in the user's time zone and manner; the text itself if it is no time."""
    try:
        moment = datetime.fromisoformat(created).astimezone()
    except ValueError:
        return created
    return long_date(moment) if long else short_moment(moment)


def machine_text(profile: Profile) -> str:
    """The computer that was measured, in one line."""
    return " · ".join(f"{name}: {value}" for name, value in profile.hardware.items())


def _speeds(first: Profile, second: Profile) -> list[Row]:
    values: tuple[tuple[str, Callable[[Profile], float]], ...] = (
        (tr("Measured, tokens per second"), lambda each: each.measured_tokens_per_second),
        (tr("Predicted, tokens per second"), lambda each: each.predicted_tokens_per_second),
    )
    rows = []
    for name, value in values:
        one, two = value(first), value(second)
        change = _change(one, two, more=tr("faster"), less=tr("slower"))
        rows.append(Row(name, f"{one:.1f}", f"{two:.1f}", change))
    errors = [f"{each.prediction_error:+.0%}".replace("-", "−") for each in (first, second)]
    return [*rows, Row(tr("Predicted time missed by"), *errors)]


def _times(first: Profile, second: Profile) -> list[Row]:
    values: tuple[tuple[str, Callable[[Profile], float | None]], ...] = (
        (tr("One expert on the CPU, 1 token"), lambda each: each.latency.cpu_lat(1)),
        (tr("One expert on the CPU, 16 tokens"), lambda each: each.latency.cpu_lat(16)),
        (
            tr("One expert on the graphics card"),
            lambda each: each.latency.gpu_lat(1) if each.latency.gpu else None,
        ),
        (tr("Copying one expert to the graphics card"), lambda each: each.latency.transfer),
        (tr("The rest of a step (attention, router, …)"), lambda each: each.latency.other_decode),
    )
    rows = []
    for name, value in values:
        one, two = value(first), value(second)
        if one is None and two is None:
            continue
        change = ""
        if one is not None and two is not None:
            change = _change(1 / one, 1 / two, more=tr("faster"), less=tr("slower"))
        rows.append(Row(name, _seconds(one), _seconds(two), change))
    return rows


def _seconds(value: float | None) -> str:
    return tr("not measured") if value is None else format_seconds(value)


def _parts(first: dict[str, str], second: dict[str, str]) -> list[Row]:
    return [
        Row(
            name[:1].upper() + name[1:],
            first.get(name, "–"),
            second.get(name, "–"),
            _other(first.get(name), second.get(name)),
        )
        for name in {**first, **second}
    ]


def _other(first: object, second: object) -> str:
    return "" if first == second else tr("changed")


def _change(before: float, after: float, *, more: str, less: str) -> str:
    """How much larger or smaller, in words; differences within the noise are none."""
    ratio = after / before
    if abs(ratio - 1) < _SAME:
        return tr("about the same")
    share = f"{abs(ratio - 1):.0%}" if ratio < 2 else tr("{factor} times", factor=f"{ratio:.1f}")
    return tr("{share} {direction}", share=share, direction=more if ratio > 1 else less)
