import sys

import pytest

from installer import system_libraries

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibxcb-cursor.so.0 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)
\tlibEGL.so.1 => not found
"""


def having(*tools):
    return lambda name: f"/usr/bin/{name}" if name in tools else None


def test_unresolved_libraries_are_read_from_ldd():
    assert system_libraries.unresolved(LDD) == ["libxcb-cursor.so.0", "libEGL.so.1"]


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("apt-get", "sudo apt-get install libxcb-cursor0 libegl1"),
        ("dnf", "sudo dnf install xcb-util-cursor libglvnd-egl"),
        ("pacman", "sudo pacman -S xcb-util-cursor libglvnd"),
    ],
)
def test_advice_names_the_packages_of_the_distribution(tool, command):
    missing = ["libxcb-cursor.so.0", "libEGL.so.1"]
    assert system_libraries.advice("Install", missing, having(tool)).endswith(command)


def test_advice_names_a_package_once():
    text = system_libraries.advice("Install", ["libglib-2.0.so.0", "libgthread-2.0.so.0"], having("apt-get"))
    assert text.count("libglib2.0-0") == 1


def test_advice_without_a_known_package_manager_names_what_is_missing():
    assert system_libraries.advice("Install", ["libEGL.so.1"], having()) == "Install: libEGL.so.1."


def test_an_unknown_library_is_named_as_it_is():
    assert "libnew.so.9" in system_libraries.advice("Install", ["libnew.so.9"], having("apt-get"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ldd and X11 are Linux's")
def test_the_libraries_of_this_machine_suffice_for_qt():
    assert system_libraries.missing_for_qt(sys.executable, with_display_tools=False) == []
