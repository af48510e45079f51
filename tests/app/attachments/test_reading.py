from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.attachments.decoding import NotTextError, decode
from app.attachments.errors import AttachmentError
from app.attachments.form import Attachment
from app.attachments.reading import MOST_BYTES, read_attachment, read_files

PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff"))


@given(PRINTABLE, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_unicode_texts_are_read_as_they_were_written(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_byte_orders_and_ends_of_lines() -> None:
    assert decode(codecs.BOM_UTF16_BE + "één\r\nzwei\r".encode("utf-16-be")) == "één\nzwei"
    assert decode(b"a\r\n\r\nb\r\n\r\n") == "a\n\nb"


def test_european_texts_in_latin_1_are_read() -> None:
    text = "Die Größe der “Äpfel” – über 5 € – fällt auf.\nDéjà vu: «¿qué?»"
    assert decode(text.encode("cp1252")) == text
    assert decode("Smørrebrød på skærebræt".encode("latin-1")) == "Smørrebrød på skærebræt"


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)),
        b"\x7fELF\x02\x01\x01\x00\x00",
        "Привет, как дела?".encode("cp1251"),
        "日本語の文章です".encode("shift-jis"),
        "中文编码".encode("gb18030"),
        b"plain \x00 zero",
        codecs.BOM_UTF16_LE + b"\x00",  # half a character
        "without a mark".encode("utf-16-le"),
    ],
)
def test_what_is_not_certainly_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotTextError):
        decode(data)


def test_a_file_is_read_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "notes on Rome.txt"
    path.write_bytes("\ufeffIn 753 BC.\r\n".encode())
    assert read_attachment(path) == Attachment("notes on Rome.txt", "In 753 BC.")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("paper.pdf", b"%PDF-1.7\n\xe2\xe3\xcf\xd3\x00", "PDF"),
        ("cat.png", b"\x89PNG\r\n\x1a\n\x00", "picture"),
        ("text.docx", b"PK\x03\x04\x14\x00\xff", "office document"),
        ("prog", b"\x7fELF\x00\xff", "encoding"),
        ("empty.txt", b" \n", "no text"),
        ("large.txt", b"x" * (MOST_BYTES + 1), "larger than 2"),
    ],
)
def test_refusals_say_what_the_file_is_and_what_to_do(
    tmp_path: Path, name: str, data: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(AttachmentError) as refused:
        read_attachment(tmp_path / name)
    assert name in refused.value.what
    assert why in refused.value.why
    assert refused.value.action


def test_folders_and_files_that_are_gone_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("good")
    found = read_files([tmp_path, tmp_path / "gone.txt", tmp_path / "good.txt"])
    assert found.attachments == (Attachment("good.txt", "good"),)
    assert ["folder" in error.why for error in found.errors] == [True, False]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_told_of_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    found = read_files([tmp_path / "pipe.json"], sort_out_chats=True)
    assert ["no ordinary file" in error.why for error in found.errors] == [True]


def test_files_with_chats_are_sorted_out(tmp_path: Path) -> None:
    ours, theirs, zipped, data = (tmp_path / name for name in ("a.json", "b.json", "c.ZIP", "data.json"))
    ours.write_text('{\n  "format": "fiddler-chat-conversation"')
    theirs.write_text('[{"title": "x", "mapping": {')
    zipped.write_bytes(b"PK\x03\x04")
    data.write_text('{"rows": [1, 2]}')
    found = read_files([ours, theirs, zipped, data], sort_out_chats=True)
    assert found.chats == (ours, theirs, zipped)
    assert [file.name for file in found.attachments] == ["data.json"]
    assert read_files([ours]).chats == ()
