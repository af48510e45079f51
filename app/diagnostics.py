"""The diagnostic report: what somebody who helps needs to know, and nothing that the user wrote."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from app.calibrations import machine_text
from app.fault_report import surroundings
from app.logs.lines import last_lines
from app.logs.recent import earlier, recent_faults
from app.paths import data_dir, database_path, profiles_dir
from app.settings import OPTIONS, Option, SettingsStore
from app.wizard.offers import Knowledge
from engine.errors import EngineError
from engine.profile import Profile
from engine.profile_history import history
from engine.units import format_bytes

_PACKAGES = ("PySide6-Essentials", "torch", "numpy", "transformers", "tokenizers", "safetensors", "psutil")
_MOST_CALIBRATIONS = 5
_HOMES = re.compile(r"((?:/home|/Users|[A-Za-z]:\\Users)[/\\])[^/\\\s]+")


@dataclass(frozen=True)
class Facts:
    """What the report is made of; `settings` as lines that are fit to be told."""

    hardware: Sequence[str]
    settings: Sequence[str]
    calibrations: Sequence[Profile]
    faults: Sequence[str]
    packages: Sequence[str] = ()
    storage: Sequence[str] = ()


def settings_lines(settings: SettingsStore) -> list[str]:
    """Every setting that is not at its default; of what can hold the user's own words only that it is set."""
    return [
        f"{option.key} = {_told(option, settings[option.key])}"
        for option in OPTIONS
        if settings[option.key] != option.default
    ]


def gather(knowledge: Knowledge, settings: Sequence[str]) -> Facts:
    """Look at the computer and at what was saved; it waits for disks and drivers."""
    try:
        hardware: Sequence[str] = knowledge.detect(quick=True).summary()
    except EngineError as error:
        hardware = (error.what,)
    kept = [each.profile for each in history(profiles_dir()).kept if each.in_use]
    recent = recent_faults.entries()
    before = [
        entry
        for entry in earlier(last_lines.since(0)[0])
        if not any(
            each.startswith(f"{entry.splitlines()[0]}:") for each in recent
        )  # of this run, and told better
    ]
    return Facts(
        hardware=hardware,
        settings=settings,
        calibrations=kept[:_MOST_CALIBRATIONS],
        faults=[*before, *recent],
        packages=[f"{name} {found}" for name in _PACKAGES if (found := _version(name))],
        storage=_storage(),
    )


def report(facts: Facts) -> str:
    """The report as text, with the user's folders and name made neutral."""
    sections = (
        ("Program", (surroundings(), *facts.packages)),
        ("Computer", facts.hardware),
        ("Settings that are not at their default", facts.settings or ("none",)),
        ("Calibrations in use", [_calibration(profile) for profile in facts.calibrations] or ("none",)),
        ("Saved data", facts.storage),
        ("Warnings and errors", facts.faults or ("none",)),
    )
    text = "\n\n".join("\n".join((f"## {title}", *lines)) for title, lines in sections)
    return neutral(text) + "\n"


def neutral(text: str) -> str:
    """`text` without the names of the user's folders."""
    for path, name in ((data_dir(), "<data folder>"), (Path.home(), "~")):
        if len(path.parts) > 1:  # "/" would be everywhere
            text = text.replace(str(path), name)
    text = _HOMES.sub(r"\1<user>", text)
    user = os.environ.get("USER") or os.environ.get("USERNAME") or ""
    return re.sub(rf"\b{re.escape(user)}\b", "<user>", text) if len(user) > 3 else text


def _told(option: Option[Any], value: object) -> str:
    if isinstance(value, str) and not option.choices:
        return "(set)"
    return str(value)


def _calibration(profile: Profile) -> str:
    return (
        f"{profile.created} · {profile.model_name} · {profile.precision} · "
        f"measured {profile.measured_tokens_per_second:.1f} tokens/s, "
        f"predicted {profile.predicted_tokens_per_second:.1f} · fit {profile.latency.fit_error:.0%} · "
        f"{machine_text(profile)}"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _storage() -> list[str]:
    """The sizes of the database's files; what is in them is nobody's business."""
    path = database_path()
    lines = []
    for suffix in ("", "-wal"):
        part = path.with_name(path.name + suffix)
        try:
            lines.append(f"{part.name}: {format_bytes(part.stat().st_size)}")
        except OSError:
            lines.append(f"{part.name}: not there")
    return lines
