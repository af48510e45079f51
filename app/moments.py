"""A point in time as the user's desktop writes it. Files that leave the computer have ISO 8601 instead."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QDateTime, QLocale


def short_moment(moment: datetime) -> str:
    """Date and time in the user's time zone and manner, such as 13/03/2026 10:00."""
    locale = QLocale()
    if locale.language() is QLocale.Language.C:  # nobody's manner
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"
    return locale.toString(
        QDateTime.fromSecsSinceEpoch(int(moment.timestamp())), QLocale.FormatType.ShortFormat
    )


def long_date(moment: datetime) -> str:
    """The day alone, with its name: Friday, 13 March 2026."""
    day = QDateTime.fromSecsSinceEpoch(int(moment.timestamp())).date()
    return QLocale().toString(day, QLocale.FormatType.LongFormat)
