"""Presets as JSON, version 1 (docs/presets-format.md): in the data folder, and in files for other people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from app.i18n import tr
from app.presets.errors import PresetFileError
from app.presets.parameters import BY_NAME, Parameters, may_be_none
from app.presets.preset import NAME_CHARACTERS, ChatSetup, Preset
from app.settings.option import SettingsError
from app.text import one_line
from engine.text import clean_text

FORMAT = "fiddler-chat-presets"
VERSION = 1
MOST_BYTES = 4 * 2**20  # of a file: thousands of presets

Json = Mapping[str, Any]


class NewerFileError(PresetFileError):
    """The file was written by a newer version of this program: it must not be replaced."""


class _FaultError(ValueError):
    """What is wrong, as the end of a sentence."""


def to_text(presets: Iterable[Preset]) -> str:
    """The file's content."""
    entries = [
        {
            "id": preset.id,
            "name": preset.name,
            "system_prompt": preset.system_prompt,
            "parameters": parameters_to_json(preset.parameters),
        }
        for preset in presets
    ]
    document = {"format": FORMAT, "version": VERSION, "presets": entries}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def from_bytes(content: bytes, name: str) -> list[Preset]:
    """The presets in a file's content; `name` is the file's, for the error. Raises `PresetFileError`."""
    try:
        if len(content) > MOST_BYTES:
            raise _FaultError(tr("it is larger than {n} MiB", n=MOST_BYTES // 2**20))
        return _presets(_document(content))
    except _FaultError as error:
        raise PresetFileError(
            tr("“{name}” could not be read as presets.", name=name),
            why=tr("The file was refused because {fault}.", fault=error),
            action=tr("Choose a file that was exported from this program's presets. Nothing was changed."),
        ) from error


def parameters_to_json(parameters: Parameters) -> dict[str, Any]:
    """`{"temperature": 0.2, "top_k": null, …}`."""
    return dataclasses.asdict(parameters)


def parameters_from_json(value: Json) -> Parameters:
    """The inverse; what is missing has its default. Raises `SettingsError` for what is not allowed."""
    given = {name: value[name] for name in BY_NAME if name in value}
    for name, item in given.items():
        if item is None and not may_be_none(name):
            BY_NAME[name].check(item)
    return Parameters(**given)


def setup_to_json(setup: ChatSetup) -> dict[str, Any]:
    """A chat's parameters as the database and exports keep them; its system prompt has a place of its own."""
    return {"preset": setup.preset, **parameters_to_json(setup.parameters)}


def setup_from_json(value: Json, system_prompt: str) -> ChatSetup | None:
    """The inverse; None for what damage, or a stranger's file, has made unusable."""
    preset = value.get("preset")
    try:
        return ChatSetup(
            preset if isinstance(preset, str) else "", system_prompt, parameters_from_json(value)
        )
    except SettingsError:
        return None


def clean_name(name: str) -> str:
    """A preset's name as it is kept: on one line, not endless; empty if nothing is left."""
    return one_line(name)[:NAME_CHARACTERS].rstrip()


def _document(content: bytes) -> Json:
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _FaultError(tr("it is not valid JSON")) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _FaultError(tr("it holds something else"))
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _FaultError(tr("it does not say which version of the format it has"))
    if version > VERSION:
        raise NewerFileError(
            tr("The presets could not be read."),
            why=tr("They were saved by a newer version of this program (format {version}).", version=version),
            action=tr("Install the newest version. The file is unchanged."),
        )
    return document


def _presets(document: Json) -> list[Preset]:
    entries = document.get("presets")
    if not isinstance(entries, list):
        raise _FaultError(tr("its list of presets is missing"))
    presets = [_preset(entry, number) for number, entry in enumerate(entries, 1)]
    if len({preset.id for preset in presets}) < len(presets):
        raise _FaultError(tr("two of its presets have the same “id”"))
    return presets


def _preset(entry: object, number: int) -> Preset:
    if not isinstance(entry, dict):
        raise _FaultError(tr("preset {number} is not an object", number=number))
    texts = {}
    for key in ("id", "name", "system_prompt"):
        value = entry.get(key, "" if key == "system_prompt" else None)
        if not isinstance(value, str):
            raise _FaultError(tr("“{key}” of preset {number} is not a text", key=key, number=number))
        texts[key] = clean_text(value)
    name = clean_name(texts["name"])
    if not name or not texts["id"]:
        raise _FaultError(tr("preset {number} has no name or no id", number=number))
    values = entry.get("parameters", {})
    if not isinstance(values, dict):
        raise _FaultError(tr("the parameters of preset {number} are not an object", number=number))
    try:
        parameters = parameters_from_json(values)
    except SettingsError as error:
        fault = str(error).rstrip(".")
        raise _FaultError(tr("of preset {number}, {fault}", number=number, fault=fault)) from error
    return Preset(texts["id"], name, texts["system_prompt"], parameters)
