"""Every visible text passes through here, so that translations can be added without touching the windows.

The English text is the key (gettext). `tr` looks up at the moment of the call: a text that is defined when a
module is imported is marked with `tr_noop` there and translated where it is shown.
"""

from __future__ import annotations

import gettext

from app.paths import assets_dir

DOMAIN = "fiddler-chat"

_catalogue: gettext.NullTranslations = gettext.NullTranslations()


def use_language(code: str) -> bool:
    """Translate from now on into `code` ("de", "pt_BR"); False without a catalogue: texts stay English."""
    global _catalogue
    try:
        _catalogue = gettext.translation(DOMAIN, assets_dir() / "translations", [code])
    except FileNotFoundError:
        _catalogue = gettext.NullTranslations()
        return False
    return True


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
    """Fill the placeholders; a translation that names an unknown one falls back to the English text."""
    if not values:
        return translated
    try:
        return translated.format(**values)
    except (KeyError, IndexError, ValueError):
        return source.format(**values)
