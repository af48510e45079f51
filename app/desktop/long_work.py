"""What long work is, and what is said when it ends. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.i18n import tr

TELL_AFTER_S = 10.0  # shorter work is awaited
AWAKE_AFTER_MS = 20_000  # no computer falls asleep sooner, and most answers ask nothing of the desktop

GENERATE, CALIBRATE, DOWNLOAD, STARTER, LOAD = (
    "generate",
    "calibrate",
    "download",
    "prepare_starter",
    "load",
)
EXPORT, IMPORT, BACKUP, RESTORE = "export", "import", "back_up", "restore"  # not the worker's: with a window
_LONG = (GENERATE, CALIBRATE, DOWNLOAD, STARTER, LOAD, EXPORT, IMPORT, BACKUP, RESTORE)


@dataclass(frozen=True)
class Ended:
    """Work that ended by itself: its name in the worker or kind as a task, its time and success."""

    operation: str
    seconds: float
    succeeded: bool = True


def is_worth_telling(ended: Ended, *, watched: bool, wanted: bool) -> bool:
    """Whether a notice is due: `watched` if a window of ours is in front, `wanted` as in the settings."""
    return wanted and not watched and ended.operation in _LONG and ended.seconds >= TELL_AFTER_S


def keeps_awake(operation: str, *, wanted: bool) -> bool:
    """Whether the computer should stay awake for what is done now."""
    return wanted and operation in _LONG


def words(ended: Ended) -> str:
    """The notice. Nothing of a chat is in it: it may appear on a locked screen."""
    if ended.succeeded:
        return {
            GENERATE: tr("The answer is complete."),
            CALIBRATE: tr("The calibration is complete."),
            DOWNLOAD: tr("The model has been downloaded."),
            STARTER: tr("The starter model is ready."),
            LOAD: tr("The model is loaded."),
            EXPORT: tr("The export is complete."),
            IMPORT: tr("The import is complete, or has a question."),
            BACKUP: tr("The backup is complete."),
            RESTORE: tr("The backup has been checked."),
        }[ended.operation]
    return {
        GENERATE: tr("The answer ended with an error."),
        CALIBRATE: tr("The calibration ended with an error."),
        DOWNLOAD: tr("The download ended with an error. It goes on where it stopped."),
        STARTER: tr("The starter model could not be prepared."),
        LOAD: tr("The model could not be loaded."),
        EXPORT: tr("The export ended with an error."),
        IMPORT: tr("The import ended with an error."),
        BACKUP: tr("The backup ended with an error."),
        RESTORE: tr("The backup could not be read."),
    }[ended.operation]
