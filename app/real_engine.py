"""The real engine behind `app.engine_factory`'s protocols.

Everything that needs torch is imported inside the methods: they run in the worker's thread, long after the
window is on the screen.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from app.engine_factory import LoadedEngine
from app.i18n import tr
from engine.errors import CheckpointError
from engine.options import LoadOptions
from engine.progress import CancelToken, ProgressCallback

if TYPE_CHECKING:
    from engine.profile import Probe, Profile


class RealEngine:
    """Implements `EngineFactory`."""

    def load(
        self, path: Path, options: LoadOptions, progress: ProgressCallback, cancel: CancelToken
    ) -> LoadedEngine:
        """Load a model with the calibration that was saved for it on this machine."""
        from engine import starter
        from engine.runtime import Engine

        try:
            return Engine.load(path, options, progress=progress, cancel=cancel)
        except CheckpointError as error:
            if path != starter.starter_dir():
                raise
            # There is nowhere to download or copy it from: it was made here, and is made anew when chosen.
            action = tr("Choose the starter model once more: it is then made anew.")
            raise CheckpointError(error.what, why=error.why, action=action) from error

    def calibrate(
        self,
        engine: LoadedEngine,
        progress: ProgressCallback,
        cancel: CancelToken,
        on_probe: Callable[[Probe], None],
    ) -> Profile:
        """Measure with a loaded model; the profile is saved and used at the next load."""
        from engine.calibration.run import calibrate
        from engine.runtime import Engine

        return calibrate(cast(Engine, engine), progress=progress, cancel=cancel, on_probe=on_probe)

    def prepare_starter(
        self, progress: ProgressCallback, cancel: CancelToken, *, force: bool = False
    ) -> Path:
        """Make the starter model if needed."""
        from engine import starter

        return starter.ensure(progress, cancel, force=force)

    def download(
        self,
        repo_id: str,
        folder: Path,
        progress: ProgressCallback,
        cancel: CancelToken,
        *,
        force: bool = False,
    ) -> Path:
        """Download from the Hugging Face hub; files that are complete are not fetched again."""
        from engine.hub import download_model

        return download_model(repo_id, folder, progress=progress, cancel=cancel, force=force)
