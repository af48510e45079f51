"""Find and save profiles: one file per hardware, model and precision. Nothing is deleted or mixed up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.checkpoint.inspect import ModelInfo
from engine.errors import CalibrationError
from engine.files import set_aside, write_atomically
from engine.hardware.facts import Hardware, fingerprint_of
from engine.options import LoadOptions
from engine.paths import profiles_dir
from engine.precision import precision_name
from engine.profile import Profile
from engine.profile_history import keep
from engine.units import format_bytes
from kernels.formats import WeightFormat

_FORBIDDEN = "was made without activations of 8 bits, and they are allowed"
_ALLOWED = "was made with activations of 8 bits allowed, and they are forbidden"
_SAMPLE = 4096  # bytes read at three places of each weight file


class ProfileState(StrEnum):
    """What was found for a machine and a model."""

    MISSING = "missing"
    VALID = "valid"
    HARDWARE_CHANGED = "hardware_changed"
    MODEL_CHANGED = "model_changed"
    PRECISION_CHANGED = "precision_changed"
    ACTIVATIONS_CHANGED = "activations_changed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class FoundProfile:
    """The result of a search. `profile` is set only if it is valid for this machine, model and precision.

    `message` tells the user what it means, and what is different now ("processor: A, now B").
    """

    state: ProfileState
    profile: Profile | None = None
    message: str = ""

    @property
    def stale(self) -> str:
        """Why an earlier calibration is of no use now; empty where there is a valid one, or none at all."""
        return "" if self.state in (ProfileState.VALID, ProfileState.MISSING) else self.message


def find_profile(
    hardware: Hardware,
    info: ModelInfo,
    *,
    threads: int | None = None,
    precision: str = WeightFormat.BF16,
    exact: bool = False,
    folder: Path | None = None,
) -> FoundProfile:
    """Look for the profile of `info` on `hardware` as it is used (`Hardware.without_gpu` for the CPU alone).

    `threads` is the CPU pool's size if it is not the default, `precision` what experts are held in, `exact`
    whether rounding activations to 8 bits is forbidden. Files of other machines and models are looked at only
    to tell what changed. Raises nothing: an unreadable file is a state.
    """
    folder = folder or profiles_dir()
    machine, model = hardware.fingerprint_parts(threads), model_parts(info)
    path = folder / file_name(machine, model, precision, exact=exact)
    if path.exists():
        found = _read(path)
        if isinstance(found, CalibrationError):
            return FoundProfile(ProfileState.UNREADABLE, None, str(found))
        rules = (found.hardware, found.model, found.precision, found.exact_activations)
        if rules == (machine, model, precision, exact):
            return FoundProfile(ProfileState.VALID, found)
    others = [profile for path in _files(folder) if isinstance(profile := _read(path), Profile)]
    others.sort(key=lambda profile: profile.created, reverse=True)
    for profile in others:
        same = (profile.hardware, profile.model, profile.precision) == (machine, model, precision)
        if same and profile.exact_activations != exact:
            text = f"The last calibration {_FORBIDDEN if profile.exact_activations else _ALLOWED} now."
            return FoundProfile(
                ProfileState.ACTIVATIONS_CHANGED,
                None,
                f"{text} Calibrate again: the other one is kept for when you change back.",
            )
    for profile in others:
        if (profile.hardware, profile.model) == (machine, model) and profile.precision != precision:
            before, now = (precision_name(WeightFormat(each)) for each in (profile.precision, precision))
            text = f"The last calibration was made with experts in {before}, and they are in {now} now."
            return FoundProfile(
                ProfileState.PRECISION_CHANGED,
                None,
                f"{text} Calibrate again: the other one is kept for when you change back.",
            )
    for profile in others:
        if profile.model == model and profile.hardware != machine:
            changes = _changes(profile.hardware, machine)
            text = f"The hardware has changed since the last calibration ({changes})."
            return FoundProfile(ProfileState.HARDWARE_CHANGED, None, f"{text} Calibrate again.")
    for profile in others:
        if profile.hardware == machine and profile.model_name == info.name and profile.model != model:
            changes = _changes(profile.model, model)
            text = f"The model has changed since the last calibration ({changes})."
            return FoundProfile(ProfileState.MODEL_CHANGED, None, f"{text} Calibrate again.")
    return FoundProfile(
        ProfileState.MISSING, None, "This model has not been calibrated on this computer yet."
    )


def find_profile_for(options: LoadOptions, hardware: Hardware, info: ModelInfo) -> FoundProfile:
    """`find_profile` for a model that is loaded with `options`."""
    return find_profile(
        hardware,
        info,
        threads=options.threads,
        precision=options.precision,
        exact=options.exact_experts,
    )


def save_profile(profile: Profile, folder: Path | None = None) -> Path:
    """Write the profile to its file and return the path; an unreadable file there is set aside first.

    The profile, and the one that it replaces, are in the history afterwards. Raises `FileError`.
    """
    name = file_name(profile.hardware, profile.model, profile.precision, exact=profile.exact_activations)
    folder = folder or profiles_dir()
    path = folder / name
    if path.exists():
        replaced = _read(path)
        if isinstance(replaced, CalibrationError):
            set_aside(path)
        else:
            keep(replaced, name, folder)  # from before there was a history
    keep(profile, name, folder)
    write_atomically(path, profile.to_json())
    return path


def file_name(
    machine: dict[str, str],
    model: dict[str, str],
    precision: str = WeightFormat.BF16,
    *,
    exact: bool = False,
) -> str:
    """The name of the profile file of a machine and a model, both as fingerprint parts, and a precision.

    bf16 is not named: files from before there was a choice are still found. `exact`: see `find_profile`.
    """
    kind = "" if precision == WeightFormat.BF16 else f"-{precision}"
    kind += "-exact" if exact else ""
    return f"{fingerprint_of(machine)}-{fingerprint_of(model)}{kind}.json"


def model_parts(info: ModelInfo) -> dict[str, str]:
    """What makes a model another model: name, shape, size, and a sample of its files' content."""
    config = info.config
    shape = (
        f"{config.num_layers} layers × {config.num_experts} experts, "
        f"top {config.top_k}, {config.hidden_size} × {config.intermediate_size}"
    )
    return {
        "name": info.name,
        "shape": shape,
        "size": format_bytes(info.total_bytes),
        "files": _content(info.path),
    }


def _content(folder: Path) -> str:
    """A hash of config.json and of each weight file's size, beginning, middle and end: quick, and enough.

    Another fine-tune of the same architecture differs everywhere, so a sample sees it; its popularity is
    different, and with it the best placement.
    """
    digest = hashlib.sha256()
    for path in (folder / "config.json", *sorted(folder.glob("*.safetensors"))):
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                digest.update(f"{path.name} {size}\n".encode())
                for position in (0, size // 2, max(0, size - _SAMPLE)):
                    file.seek(position)
                    digest.update(file.read(_SAMPLE))
        except OSError:
            digest.update(f"{path.name} unreadable\n".encode())
    return digest.hexdigest()[:16]


def _read(path: Path) -> Profile | CalibrationError:
    try:
        return Profile.from_json(path.read_text(encoding="utf-8"))
    except CalibrationError as error:
        return error
    except (OSError, UnicodeDecodeError) as error:
        return CalibrationError(
            "The saved calibration cannot be read.",
            why=f"{path.name}: {error}.",
            action="Calibrate again; the old file is kept aside.",
        )


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-*.json")) if folder.is_dir() else []


def _changes(before: dict[str, str], now: dict[str, str]) -> str:
    """ "processor: A, now B" for every part that differs; hashes mean nothing to people."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return "; ".join(
        "the content of its files"
        if key == "files"
        else f"{key}: {before.get(key, '?')}, now {now.get(key, '?')}"
        for key in keys
    )
