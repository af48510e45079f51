"""What a model's folder says about generation: default sampling, and the tokens that end an answer."""

from __future__ import annotations

from pathlib import Path

from engine.checkpoint.reader import read_optional_json
from engine.errors import CheckpointError, GenerationError
from engine.params import GenerationParams, SamplingParams

_SAMPLING_NAMES = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
GREEDY = GenerationParams(SamplingParams(temperature=0), stop_loops=True)


def default_params(folder: Path, *, is_starter: bool) -> GenerationParams:
    """The parameters to begin with, from `generation_config.json` in a model's folder.

    The starter model always answers greedily, with a stop for loops. Other models: what the file sets
    replaces our defaults, and an explicit "do_sample": false means greedy. Raises CheckpointError for a file
    that cannot be read or has impossible values.
    """
    if is_starter:
        return GREEDY
    config = read_optional_json(folder / "generation_config.json")
    if config.get("do_sample") is False:
        return GenerationParams(SamplingParams(temperature=0))
    given = {name: config[name] for name in _SAMPLING_NAMES if config.get(name) is not None}
    top_k = given.get("top_k")
    if isinstance(top_k, float) and top_k.is_integer():  # as some programs write whole numbers
        given["top_k"] = int(top_k)
    try:
        return GenerationParams(SamplingParams(**given))
    except (GenerationError, TypeError) as error:
        raise CheckpointError(
            "The model's generation_config.json has an impossible value.",
            why=str(error),
            action="Correct the value, or delete the file to use this program's defaults.",
        ) from error


def eos_ids(folder: Path) -> frozenset[int]:
    """The ids in "eos_token_id" of `generation_config.json`, or else of `config.json`; empty without.

    Raises CheckpointError for a file that cannot be read.
    """
    for name in ("generation_config.json", "config.json"):
        found = read_optional_json(folder / name).get("eos_token_id")
        ids = found if isinstance(found, list) else [found]
        if found is not None and all(isinstance(token, int) for token in ids):
            return frozenset(ids)
    return frozenset()
