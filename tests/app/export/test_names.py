import ntpath
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.export import free_path, suggested_name


def is_reserved(name: str) -> bool:
    """Python's own knowledge of Windows' names: a function since 3.13, a method before."""
    function = getattr(ntpath, "isreserved", None)
    return bool(function(name) if function else PureWindowsPath(name).is_reserved())


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Rome", "Rome.md"),
        ('What is "C:\\temp"? <b>|*', "What is C temp b.md"),
        ("a/b\\c:d", "a b c d.md"),
        ("..", "chat.md"),
        ("", "chat.md"),
        ("???", "chat.md"),
        (".hidden. ", "hidden.md"),
        ("CON", "_CON.md"),
        ("nul.txt", "_nul.txt.md"),
        ("com1 ", "_com1.md"),
        ("LPT³", "_LPT³.md"),
        ("Console", "Console.md"),
        ("com10", "com10.md"),
        ("a\nb\tc", "a b c.md"),
        ("photo\u202egnp.exe", "photo gnp.exe.md"),
        ("我" * 200, "我" * 66 + ".md"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧 family.md"),
        ("e\u0301t\u00e9", "été.md"),
        ("x" * 300, "x" * 100 + ".md"),
        ("x" * 99 + ". y", "x" * 99 + ".md"),
    ],
)
def test_names(title: str, name: str) -> None:
    assert suggested_name(title, ".md") == name


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_every_title_gives_a_legal_name(title: str) -> None:
    name = suggested_name(title, ".json")
    assert len(name.encode()) <= 255
    assert name.endswith(".json")
    assert not set(name) & set('<>:"/\\|?*\x00')
    assert name == name.strip(" .")
    assert PureWindowsPath(name).name == name
    assert not is_reserved(name)


def test_a_free_name_is_found(tmp_path: Path) -> None:
    assert free_path(tmp_path, "Rome.md") == tmp_path / "Rome.md"
    (tmp_path / "Rome.md").touch()
    (tmp_path / "Rome (2).md").touch()
    assert free_path(tmp_path, "Rome.md") == tmp_path / "Rome (3).md"
