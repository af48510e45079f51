"""`python -m installer.gallery FOLDER`: play scenes in one scale; Qt reads QT_SCALE_FACTOR as it starts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.theme import THEMES
from installer.gallery import main_window, troubles, windows, wizard
from installer.gallery.studio import play

SCENES = (*main_window.SCENES, *windows.SCENES, *troubles.SCENES, *wizard.SCENES)


def main() -> int:
    """Play all scenes, or those that are named; 1 where one could not be played to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--theme", choices=THEMES[1:], action="append")
    parser.add_argument("--scene", choices=[scene.__name__ for scene in SCENES], action="append")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    QGuiApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    application = QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    failed = 0
    for scene in SCENES:
        if options.scene and scene.__name__ not in options.scene:
            continue
        try:
            play(scene, options.folder, options.theme or THEMES[1:])
        except TimeoutError as error:  # the other scenes are worth looking at all the same
            print(f"{scene.__name__}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
