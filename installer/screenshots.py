"""`python -m installer.screenshots`: the pictures in assets/screenshots/, taken from the real program.

Walks through the wizard on a virtual screen, asks a question and opens the settings, in light and in dark.
Needs Xvfb, xdotool and ImageMagick, and the starter model's source, as `make test` fetches it.

`python -m installer.screenshots --all --out FOLDER` takes pictures of everything else, too, for looking at:
every window in every state, theme and scale (`installer.gallery`). These need none of it, and are not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from installer.bootstrap import ROOT
from installer.real_screen import Screen, real_screen, wait_until

HOME = Path("/home/user")  # of nobody, for as long as the pictures are taken
TARGET = ROOT / "assets" / "screenshots"
NOTES = "At sunset the light takes a longer way through the air.\n"
NEXT = "And why is it red in the evening, as in my notes?"
QUESTION = "Explain in a few sentences why the sky is blue."
SCALES = ("1", "1.5", "2")
SCREEN = {"width": 1920, "height": 1080, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
PAGES = ("Your computer", "Model and plan", "Get the model", "Calibrate", "Result")


@contextmanager
def data_folder(home: Path = HOME) -> Iterator[Path]:
    """An empty data folder whose path can be seen in a picture; a temporary one if `home` cannot be made."""
    try:
        home.mkdir()  # nobody's: one that is there is never touched
    except OSError as error:
        print(f"{home} cannot be made ({error.strerror}): the settings will show a temporary folder")
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    try:
        data = home / "Fiddler Chat"
        data.mkdir()
        yield data
    finally:
        shutil.rmtree(home)


def take(screen: Screen, title: str, name: str) -> None:
    """Save a picture of the window called `title`, once it has settled, with at most 256 colours."""
    window = screen.wait_for_window(title, 60)
    time.sleep(1.5)
    target = TARGET / f"{name}.png"
    command = ["import", "-window", window, "-colors", "256", "-define", "png:color-type=3", str(target)]
    subprocess.run(command, env=screen.environment, check=True)
    print(target.relative_to(ROOT))


def go_on_to(screen: Screen, page: str) -> None:
    """Press Next until `page` is there."""

    def look() -> bool | None:
        if screen.window(f"^{page}"):
            return True
        screen.press("alt+n")
        time.sleep(3)  # seldom: looking for windows would disturb the calibration
        return None

    wait_until(look, 400, page)


def attach(screen: Screen, text: str) -> None:
    """Attach a file with this text to the next message."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notes.txt"
        path.write_text(text, encoding="utf-8")
        screen.press("ctrl+o")
        screen.wait_for_window("^Attach", 30)
        screen.type(str(path))
        screen.press("Return")
        wait_until(lambda: None if screen.window("^Attach") else True, 30, "the file")
        screen.wait_for_window("Fiddler Chat$", 30)
        time.sleep(2)  # it is read beside the window


def walk(screen: Screen, theme: str) -> None:
    """From the first page of the wizard to the settings, with a picture of each."""
    for page in PAGES:
        go_on_to(screen, page)
        if page == "Model and plan":
            screen.press("space")  # the starter model is the first choice
        if page == "Calibrate":
            time.sleep(6)  # some probes are shown then, and some are to come
        take(screen, f"^{page}", f"wizard-{page.lower().replace(' ', '-')}-{theme}")
    screen.press("Return")
    wait_until(lambda: None if screen.window("^Result") else True, 60, "the wizard's end")
    screen.wait_for_window("Fiddler Chat$", 30)
    screen.type(QUESTION)
    screen.press("Return")
    time.sleep(12)
    attach(screen, NOTES)
    screen.type(NEXT)
    take(screen, "Fiddler Chat$", f"chat-{theme}")
    screen.press("ctrl+comma")
    take(screen, "^Settings", f"settings-{theme}")


def gallery(out: Path, scales: Sequence[str], words: Sequence[str]) -> int:
    """Pictures of every scene, in a folder for each scale; 1 where a scene was not played to its end."""
    failed = 0
    with tempfile.NamedTemporaryFile("w", suffix=".json") as screen:
        json.dump({"screens": [{"name": "picture", "x": 0, "y": 0, **SCREEN}]}, screen)
        screen.flush()
        for scale in scales:
            environment = {
                **os.environ,
                "QT_QPA_PLATFORM": f"offscreen:configfile={screen.name}",
                "QT_SCALE_FACTOR": scale,
                "QT_LOGGING_RULES": "qt.qpa.*=false",
            }
            command = [sys.executable, "-m", "installer.gallery", str((out / scale).resolve()), *words]
            failed |= subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return failed


def main() -> int:
    """Take all pictures, or those of one theme."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--theme", choices=("light", "dark", "contrast_light", "contrast_dark"), action="append"
    )
    parser.add_argument("--all", action="store_true", help="every window in every state, into --out")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "gallery", help="where those of --all go"
    )
    parser.add_argument("--scale", choices=SCALES, action="append", help="of --all: only these")
    parser.add_argument("--scene", action="append", default=[], help="of --all: only these")
    options = parser.parse_args()
    failed = 0
    if options.all:
        words = [word for theme in options.theme or () for word in ("--theme", theme)]
        words += [word for scene in options.scene for word in ("--scene", scene)]
        failed = gallery(options.out, options.scale or SCALES, words)
        if options.scale or options.scene:
            return failed  # somebody looks at a part
    themes = options.theme or ["light", "dark"]
    TARGET.mkdir(parents=True, exist_ok=True)
    for theme in themes:
        with data_folder() as data, real_screen() as screen:
            (data / "settings.toml").write_text(f'[appearance]\ntheme = "{theme}"\n')
            environment = {**screen.environment, "FIDDLER_DATA_DIR": str(data)}
            program = subprocess.Popen([sys.executable, "-m", "app"], cwd=ROOT, env=environment)
            try:
                walk(screen, theme)
            finally:
                program.terminate()
                program.wait(timeout=30)
    return failed


if __name__ == "__main__":
    sys.exit(main())
