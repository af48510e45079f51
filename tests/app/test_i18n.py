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
    yield
    i18n._catalogue = before


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


def test_counts_choose_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    assert i18n.tr_count("{count} chat", "{count} chats", 1) == "1 chat"
    assert i18n.tr_count("{count} chat", "{count} chats", 0) == "0 chats"
    monkeypatch.setattr(i18n, "_catalogue", Reversing())
    assert i18n.tr_count("{count} chat", "{count} chats", 5) == "(5 chats)"


def test_an_unknown_language_stays_english(tmp_path: Path) -> None:
    assert not i18n.use_language("tlh")
    assert i18n.tr("Settings") == "Settings"


def test_any_name_can_be_a_placeholder() -> None:
    assert i18n.tr("{text} and {one}", text="a", one="b") == "a and b"
