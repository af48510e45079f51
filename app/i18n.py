"""Every visible text passes through here, so that translations can be added without touching the windows.

The English text is the key (gettext). `tr` looks up at the moment of the call: a text that is defined when a
module is imported is marked with `tr_noop` there and translated where it is shown.
"""

from __future__ import annotations

import gettext
import struct
from pathlib import Path

from PySide6.QtCore import QLocale

from app.paths import assets_dir, data_dir

DOMAIN = "fiddler-chat"
AS_THE_DESKTOP = "system"
SOURCE_LANGUAGE = "en"

_catalogue: gettext.NullTranslations = gettext.NullTranslations()
_language = SOURCE_LANGUAGE  # of the catalogue


def use_language(code: str) -> bool:
    """Translate from now on into `code` ("de", "pt_BR"; "system": what the desktop wants and we have).

    False without a usable catalogue: texts stay English.
    """
    global _catalogue, _language
    _catalogue, _language = gettext.NullTranslations(), SOURCE_LANGUAGE
    for wanted in _desktop_languages() if code == AS_THE_DESKTOP else [code]:
        if wanted.partition("_")[0] == SOURCE_LANGUAGE:
            return False
        for folder in _folders():
            try:
                _catalogue = gettext.translation(DOMAIN, folder, [wanted])
            except (OSError, ValueError, struct.error):
                continue  # not there, or not a catalogue: English is better than no start
            _language = wanted
            return True
    return False


def language_tag() -> str:
    """The language of the texts, as web pages name it ("pt-BR")."""
    return _language.replace("_", "-")


def languages() -> list[tuple[str, str]]:
    """The languages there are, as codes with their own names: English and what has a catalogue."""
    codes = {
        path.parent.parent.name
        for folder in _folders()
        for path in folder.glob(f"*/LC_MESSAGES/{DOMAIN}.mo")
        if path.is_file()
    }
    return [(code, _native_name(code)) for code in (SOURCE_LANGUAGE, *sorted(codes - {SOURCE_LANGUAGE}))]


def _folders() -> tuple[Path, ...]:
    """Where catalogues are: the program's own, and one in the data folder for people who translate."""
    return data_dir() / "translations", assets_dir() / "translations"


def _desktop_languages() -> list[str]:
    return [tag.replace("-", "_") for tag in QLocale.system().uiLanguages()]


def _native_name(code: str) -> str:
    locale = QLocale(code)
    if locale.language() is QLocale.Language.C:
        return code
    if code == SOURCE_LANGUAGE:
        return "English"  # Qt would say which English
    name = locale.nativeLanguageName()
    return name[:1].upper() + name[1:]


def tr(text: str, /, **values: object) -> str:
    """`text` in the user's language, with `{name}` placeholders filled from `values`.

    Without values nothing is filled in, so braces in such a text stay as they are.
    """
    return _fill(_catalogue.gettext(text), text, values)


def tr_count(one: str, many: str, count: int, /, **values: object) -> str:
    """Like `tr` for a text with a number in it: `one` or `many` by `count`, which `{count}` shows."""
    source = one if count == 1 else many
    return _fill(_catalogue.ngettext(one, many, count), source, {"count": count, **values})


def tr_noop(text: str) -> str:
    """Mark a text for translation without translating it yet."""
    return text


def _fill(translated: str, source: str, values: dict[str, object]) -> str:
    """Fill the placeholders; a translation with others, or damaged ones, falls back to the English text."""
    if not values:
        return translated
    try:
        return translated.format(**values)
    except (LookupError, ValueError, AttributeError, TypeError):
        return source.format(**values)
