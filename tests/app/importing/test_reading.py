import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.importing import sources as source_files
from app.importing.errors import ImportFileError
from app.importing.outcome import Contents, LeftOut
from app.importing.reading import read_files
from engine.errors import Cancelled
from engine.progress import CancelToken, Progress, ignore_progress
from tests.app.importing.chatgpt_files import conversation, message, simple

V1 = (Path(__file__).parent / "released" / "v1.json").read_text("utf-8")


def read(*paths: Path) -> Contents:
    return read_files(paths, ignore_progress, CancelToken())


def written(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def zipped(path: Path, **members: object) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            text = value if isinstance(value, str) else json.dumps(value)
            archive.writestr(name.replace("__", ".").replace("_slash_", "/"), text)
    return path


def titles(contents: Contents) -> list[str]:
    return [chat.title for chat in contents.chats]


def test_our_own_file(tmp_path: Path) -> None:
    assert titles(read(written(tmp_path / "a.json", V1))) == ["Rome"]
    assert titles(read(written(tmp_path / "bom.json", "\ufeff" + V1))) == ["Rome"]


def test_our_own_zip(tmp_path: Path) -> None:
    path = zipped(tmp_path / "all.zip", a__json=V1, b__json=V1.replace('"Rome"', '"Roma"'), notes__txt="hi")
    contents = read(path)
    assert titles(contents) == ["Rome", "Roma"]
    assert not contents.refused


def test_chatgpt_as_a_file_and_in_its_zip(tmp_path: Path) -> None:
    chats = [simple(), simple("And Paris?", title="Paris")]
    assert titles(read(written(tmp_path / "conversations.json", chats))) == ["Rome", "Paris"]
    others = {"user__json": {"email": "x"}, "chat__html": "<html>", "message_feedback__json": []}
    contents = read(zipped(tmp_path / "a.zip", conversations__json=chats, **others))
    assert titles(contents) == ["Rome", "Paris"]
    assert not contents.refused  # what lies beside it is not our business
    parts = {"x_slash_conversations-000__json": chats[:1], "x_slash_conversations-001__json": chats[1:]}
    assert titles(read(zipped(tmp_path / "b.zip", **parts))) == ["Rome", "Paris"]


def test_one_bad_chat_does_not_spoil_the_others(tmp_path: Path) -> None:
    picture = message("user", {"content_type": "image_asset_pointer"}, "x", kind="multimodal_text")
    chats = [simple(), conversation(title="Empty"), {"a": 1}, 7, conversation(("q", None, picture))]
    contents = read(written(tmp_path / "conversations.json", chats))
    assert len(contents.chats) == 2
    assert [(item.name, item.why) for item in contents.refused] == [
        ("Empty", "it holds no written messages"),
        ("conversations.json, part 3", "it is not a chat"),
        ("conversations.json, part 4", "it is not a chat"),
    ]
    assert contents.left_out == {LeftOut.PICTURES: 1}


def test_what_is_there_twice_is_taken_once(tmp_path: Path) -> None:
    contents = read(written(tmp_path / "a.json", V1), written(tmp_path / "b.json", V1))
    assert titles(contents) == ["Rome"]
    assert [item.why for item in contents.refused] == ["it is there twice"]


def test_several_files_of_which_one_is_foreign(tmp_path: Path) -> None:
    contents = read(written(tmp_path / "a.json", V1), written(tmp_path / "b.json", "{"))
    assert titles(contents) == ["Rome"]
    assert contents.refused[0].name == "b.json"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "It is empty"),
        ("# Rome\n\nMarkdown", "damaged"),
        ("{}", "not a chat"),
        ("[]", "no chats"),
        ('{"format": "fiddler-chat-conversation", "version": 99}', "newer version"),
        (V1[:-30], "damaged"),
        (V1.replace('"role": "user"', '"role": "bot"', 1), "role"),
        ("[" * 50_000, "nested"),
    ],
)
def test_foreign_and_damaged_files_are_refused_with_a_reason(
    tmp_path: Path, content: str, words: str
) -> None:
    with pytest.raises(ImportFileError, match=words) as caught:
        read(written(tmp_path / "a.json", content))
    assert "unchanged" in caught.value.what
    assert "a.json" in str(caught.value)
    assert caught.value.action


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="No such file"):
        read(tmp_path / "missing.json")
    with pytest.raises(ImportFileError):
        read(tmp_path)  # a folder
    with pytest.raises(ImportFileError, match="name"):
        read(tmp_path / "null\0.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ImportFileError, match="UTF-8"):
        read(tmp_path / "binary.json")


def test_archives_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="no chats in this archive"):
        read(zipped(tmp_path / "empty.zip", notes__txt="hi"))
    whole = zipped(tmp_path / "a.zip", conversations__json=[simple()]).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImportFileError, match="damaged"):
        read(tmp_path / "cut.zip")
    (tmp_path / "encrypted.zip").write_bytes(_encrypted(whole))
    with pytest.raises(ImportFileError, match="encrypted"):
        read(tmp_path / "encrypted.zip")


def _encrypted(whole: bytes) -> bytes:
    """The archive with the mark of encryption on its file."""
    data = bytearray(whole)
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def test_an_archive_that_is_packed_in_another_way_and_damaged(tmp_path: Path) -> None:
    path = tmp_path / "lzma.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.json", V1)
    content = bytearray(path.read_bytes())
    content[60:200] = b"\xff" * 140
    path.write_bytes(content)
    with pytest.raises(ImportFileError, match="damaged"):
        read(path)


def test_a_byte_that_changed_is_found_or_harmless(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "a.zip", conversations__json=[simple()]).read_bytes()
    dice = random.Random(5)
    refused = 0
    for _ in range(200):
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        (tmp_path / "b.zip").write_bytes(bytes(data))
        try:
            assert titles(read(tmp_path / "b.zip")) == ["Rome"]
        except ImportFileError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("make", [written, lambda path, text: zipped(path, a__json=text)])
def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path, Any], Path]
) -> None:
    monkeypatch.setattr(source_files, "_MOST_BYTES", 1000)
    with pytest.raises(ImportFileError, match="larger than"):
        read(make(tmp_path / "a.json", V1))


def test_reading_tells_how_far_it_is_and_can_be_cancelled(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", V1)
    token = CancelToken()
    seen: list[Progress] = []

    def note(progress: Progress) -> None:
        seen.append(progress)
        token.cancel()

    with pytest.raises(Cancelled):
        read_files([path], note, token)
    assert (seen[0].done, seen[0].total) == (path.stat().st_size,) * 2
