import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app import i18n

if TYPE_CHECKING:
    import gettext


class Reversing:
    """A catalogue for tests: two known texts, one of them with a mistake in its placeholder."""

    texts: dict[str, str] = {"Open {name}": "{name} öffnen", "Close {name}": "{nom} fermer"}  # noqa: RUF012

    def gettext(self, text: str) -> str:
        return self.texts.get(text, text)

    def ngettext(self, one: str, many: str, count: int) -> str:
        return f"({one if count < 2 else many})"


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before: gettext.NullTranslations = i18n._catalogue
    language = i18n._language
    yield
    i18n._catalogue, i18n._language = before, language


def test_english_fills_its_placeholders() -> None:
    assert i18n.tr("Delete “{title}”?", title="Rome {and} Paris") == "Delete “Rome {and} Paris”?"
    assert i18n.tr("Braces {stay} without values") == "Braces {stay} without values"


def test_a_translation_is_looked_up_when_called(monkeypatch: pytest.MonkeyPatch) -> None:
    source = i18n.tr_noop("Open {name}")
    assert i18n.tr(source, name="x") == "Open x"
    monkeypatch.setattr(i18n, "_catalogue", Reversing())
    assert i18n.tr(source, name="x") == "x öffnen"


def test_a_wrong_placeholder_in_a_translation_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "_catalogue", Reversing())
    assert i18n.tr("Close {name}", name="x") == "Close x"


@pytest.mark.parametrize("damaged", ["{", "{name", "{0}", "{name.first}", "{name[first]}", "{name:?}"])
def test_a_damaged_placeholder_in_a_translation_falls_back(
    monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    catalogue = i18n.gettext.NullTranslations()
    monkeypatch.setattr(catalogue, "gettext", lambda _: damaged)
    monkeypatch.setattr(i18n, "_catalogue", catalogue)
    assert i18n.tr("Close {name}", name=5) == "Close 5"


def test_counts_choose_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    assert i18n.tr_count("{count} chat", "{count} chats", 1) == "1 chat"
    assert i18n.tr_count("{count} chat", "{count} chats", 0) == "0 chats"
    monkeypatch.setattr(i18n, "_catalogue", Reversing())
    assert i18n.tr_count("{count} chat", "{count} chats", 5) == "(5 chats)"


def test_an_unknown_language_stays_english() -> None:
    assert not i18n.use_language("tlh")
    assert i18n.tr("Settings") == "Settings"


def test_any_name_can_be_a_placeholder() -> None:
    assert i18n.tr("{text} and {one}", text="a", one="b") == "a and b"


def compiled(texts: dict[str, str]) -> bytes:
    """A gettext catalogue (.mo) with `texts`, built as the format is described in gettext's manual."""
    entries = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **texts}.items())
    tables: list[bytes] = []
    pool = b""
    start = 28 + 16 * len(entries)
    for column in (0, 1):
        for entry in entries:
            text = entry[column].encode()
            tables.append(struct.pack("<2I", len(text), start + len(pool)))
            pool += text + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(entries), 28, 28 + 8 * len(entries), 0, 0)
    return head + b"".join(tables) + pool


def test_a_catalogue_among_the_assets_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "translations" / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "fiddler-chat.mo").write_bytes(compiled({"Delete “{title}”?": "„{title}“ löschen?"}))
    monkeypatch.setattr(i18n, "assets_dir", lambda: tmp_path)
    assert i18n.use_language("de")
    assert i18n.tr("Delete “{title}”?", title="Rom") == "„Rom“ löschen?"
    assert i18n.tr("Settings") == "Settings"
    assert i18n.languages() == [("en", "English"), ("de", "Deutsch")]
    assert not i18n.use_language("fr")
    assert i18n.tr("Delete “{title}”?", title="Rom") == "Delete “Rom”?"


def test_a_catalogue_in_the_data_folder_comes_first(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(i18n, "assets_dir", lambda: tmp_path)
    for root, text in ((tmp_path, "Einstellungen"), (data_dir, "Optionen")):
        folder = root / "translations" / "de" / "LC_MESSAGES"
        folder.mkdir(parents=True)
        (folder / "fiddler-chat.mo").write_bytes(compiled({"Settings": text}))
    assert i18n.use_language("de_AT")
    assert i18n.tr("Settings") == "Optionen"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(["fr-FR", "de-AT", "en-US"], "Optionen"), (["en-GB", "de-DE"], "Settings"), (["fr-FR"], "Settings")],
)
def test_the_desktops_first_language_that_there_is(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, wanted: list[str], expected: str
) -> None:
    folder = data_dir / "translations" / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "fiddler-chat.mo").write_bytes(compiled({"Settings": "Optionen"}))
    monkeypatch.setattr(i18n, "_desktop_languages", lambda: [tag.replace("-", "_") for tag in wanted])
    i18n.use_language(i18n.AS_THE_DESKTOP)
    assert i18n.tr("Settings") == expected


@pytest.mark.parametrize("content", [b"", b"not a catalogue", compiled({})[:20]])
def test_a_damaged_catalogue_does_not_stop_the_start(data_dir: Path, content: bytes) -> None:
    folder = data_dir / "translations" / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "fiddler-chat.mo").write_bytes(content)
    assert not i18n.use_language("de")
    assert i18n.tr("Settings") == "Settings"
