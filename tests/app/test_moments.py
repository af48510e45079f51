"""Times as the user's desktop writes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QLocale

from app.moments import long_date, short_moment

MOMENT = datetime(2026, 3, 13, 12, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = QLocale()
    yield
    QLocale.setDefault(before)


@pytest.mark.parametrize(
    ("name", "day"), [("en_GB", "13/03/2026 "), ("de_DE", "13.03.26 "), ("C", "2026-03-13 ")]
)
def test_a_moment_is_written_in_the_desktops_manner(name: str, day: str) -> None:
    QLocale.setDefault(QLocale(name))
    local = MOMENT.astimezone()
    assert local.day == MOMENT.day
    assert short_moment(MOMENT) == f"{day}{local:%H:%M}"
    assert short_moment(local) == short_moment(MOMENT)


def test_a_day_is_written_with_its_name() -> None:
    QLocale.setDefault(QLocale("en_GB"))
    assert long_date(MOMENT) == "Friday, 13 March 2026"
