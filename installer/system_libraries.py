"""Which system packages are missing, and the command that installs them on this distribution."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

# What is needed → its package for apt, dnf and pacman. Shared libraries are named as `ldd` names them.
PACKAGES: dict[str, tuple[str, str, str]] = {
    "c++": ("g++", "gcc-c++", "gcc"),
    "headers": ("python3-dev", "python3-devel", "python"),
    "venv": ("python3-venv", "python3", "python"),
    "Xvfb": ("xvfb", "xorg-x11-server-Xvfb", "xorg-server-xvfb"),
    "xdotool": ("xdotool", "xdotool", "xdotool"),
    "libEGL.so.1": ("libegl1", "libglvnd-egl", "libglvnd"),
    "libGL.so.1": ("libgl1", "libglvnd-glx", "libglvnd"),
    "libOpenGL.so.0": ("libopengl0", "libglvnd-opengl", "libglvnd"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus-libs", "dbus"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype", "freetype2"),
    "libgssapi_krb5.so.2": ("libgssapi-krb5-2", "krb5-libs", "krb5"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libgthread-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libX11.so.6": ("libx11-6", "libX11", "libx11"),
    "libX11-xcb.so.1": ("libx11-xcb1", "libX11-xcb", "libx11"),
    "libICE.so.6": ("libice6", "libICE", "libice"),
    "libSM.so.6": ("libsm6", "libSM", "libsm"),
    "libxcb.so.1": ("libxcb1", "libxcb", "libxcb"),
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    "libxcb-glx.so.0": ("libxcb-glx0", "libxcb", "libxcb"),
    "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image", "xcb-util-image"),
    "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    "libxcb-randr.so.0": ("libxcb-randr0", "libxcb", "libxcb"),
    "libxcb-render.so.0": ("libxcb-render0", "libxcb", "libxcb"),
    "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil", "xcb-util-renderutil"),
    "libxcb-shape.so.0": ("libxcb-shape0", "libxcb", "libxcb"),
    "libxcb-shm.so.0": ("libxcb-shm0", "libxcb", "libxcb"),
    "libxcb-sync.so.1": ("libxcb-sync1", "libxcb", "libxcb"),
    "libxcb-util.so.1": ("libxcb-util1", "xcb-util", "xcb-util"),
    "libxcb-xfixes.so.0": ("libxcb-xfixes0", "libxcb", "libxcb"),
    "libxcb-xkb.so.1": ("libxcb-xkb1", "libxcb", "libxcb"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
}
MANAGERS = (("apt-get", "sudo apt-get install"), ("dnf", "sudo dnf install"), ("pacman", "sudo pacman -S"))


def advice(lead: str, missing: list[str], which: Callable[[str], str | None] = shutil.which) -> str:
    """One sentence with the exact command for this distribution, or the plain names where none is known."""
    for column, (tool, command) in enumerate(MANAGERS):
        if which(tool):
            names = dict.fromkeys(PACKAGES[item][column] if item in PACKAGES else item for item in missing)
            return f"{lead} them with:\n    {command} {' '.join(names)}"
    return f"{lead}: {', '.join(missing)}."


def missing_build_tools() -> list[str]:
    """What is missing to compile the C++ kernels (CMake and ninja come as Python packages)."""
    if sys.platform == "win32":
        return []  # CMake finds Visual Studio by itself and names it when it is missing
    missing = []
    if not any(shutil.which(compiler) for compiler in ("c++", "g++", "clang++")):
        missing.append("c++")
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        missing.append("headers")
    return missing


def unresolved(ldd_output: str) -> list[str]:
    """The libraries that `ldd` reports as not found, in its order."""
    return re.findall(r"^\s*(\S+) => not found", ldd_output, flags=re.MULTILINE)


def missing_for_qt(python: Path, *, with_display_tools: bool) -> list[str]:
    """System libraries that Qt's widgets, its X11 plugin and its sockets need and this Linux machine lacks.

    With `with_display_tools` also the programs with which the tests start the real window.
    """
    if not sys.platform.startswith("linux"):
        return []
    where = "import importlib.util as u; print(u.find_spec('PySide6').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    qt = Path(found) / "Qt"
    missing: list[str] = []
    for binary in ("plugins/platforms/libqxcb.so", "lib/libQt6Widgets.so.6", "lib/libQt6Network.so.6"):
        listing = subprocess.run(["ldd", qt / binary], capture_output=True, text=True, check=False)
        missing += unresolved(listing.stdout)
    if with_display_tools:
        missing += [tool for tool in ("Xvfb", "xdotool") if not shutil.which(tool)]
    return list(dict.fromkeys(missing))
