from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.desktop.handover import Handover, absolute, decode, encode

names = st.text(st.characters(exclude_characters="\0/"), min_size=1).filter(lambda name: name not in "..")


@given(st.lists(names), st.text())
def test_what_is_written_is_read(files: list[str], token: str) -> None:
    handover = Handover(tuple(Path("/folder", file) for file in files), token)
    line = encode(handover)
    assert line.count(b"\n") == 1  # whatever the names contain: the reader waits for a line
    assert line.endswith(b"\n")
    assert decode(line) == handover


@given(st.binary() | st.text().map(str.encode))
def test_whatever_arrives_does_no_harm(line: bytes) -> None:
    handover = decode(line)
    assert handover is None or isinstance(handover, Handover)


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"files": "a"}', b'{"files": [1]}', b"[" * 100_000])
def test_what_is_no_handover_is_refused(line: bytes) -> None:
    assert decode(line) is None


def test_a_later_program_may_say_more() -> None:
    assert decode(b'{"files": ["/a"], "token": 3, "new": true}') == Handover((Path("/a"),))


def test_files_are_named_for_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute(["chats.json", "/x/y.zip"]) == (tmp_path / "chats.json", Path("/x/y.zip"))
