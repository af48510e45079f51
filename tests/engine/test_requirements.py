from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ShortageError
from engine.requirements import Item, Need, Requirements, Resource
from engine.units import GIB

SIZES = st.integers(0, 2**48)


def need(resource: Resource, wanted: int, available: int) -> Need:
    items = (Item("weights", wanted // 2), Item("cache", wanted - wanted // 2))
    return Need(resource, items, available, (f"Free some {resource.label}.",))


@given(wanted=SIZES, available=SIZES)
def test_missing_is_what_is_needed_beyond_what_is_there(wanted: int, available: int) -> None:
    one = need(Resource.RAM, wanted, available)
    assert one.total == wanted
    assert one.missing == max(0, wanted - available)
    assert one.fits == (one.missing == 0)
    assert ("missing" in one.summary()) != one.fits


def test_the_refusal_names_missing_amounts_and_what_would_help() -> None:
    requirements = Requirements(
        (
            need(Resource.RAM, 90 * GIB, 20 * GIB),
            need(Resource.VRAM, 6 * GIB, 8 * GIB),
            need(Resource.DISK, 3 * GIB, 1 * GIB),
        ),
        "load Mixtral",
    )
    with pytest.raises(ShortageError) as caught:
        requirements.check()
    error = caught.value
    assert error.what == (
        "There is not enough room to load Mixtral: 70.0 GiB of memory and 2.0 GiB of disk space missing."
    )
    assert "90.0 GiB of memory needed, 20.0 GiB available" in error.why
    assert "graphics" not in str(error)
    assert "Free some memory." in error.action
    assert "Free some disk space." in error.action
    assert "go on anyway" in error.action


def test_force_goes_on_anyway_and_enough_room_never_refuses() -> None:
    Requirements((need(Resource.RAM, 2, 1),), "load").check(force=True)
    Requirements((need(Resource.RAM, 1, 1),), "load").check()
    assert Requirements((), "load").fits


def test_every_item_is_listed_and_found_by_resource() -> None:
    ram = need(Resource.RAM, 3 * GIB, 1 * GIB)
    requirements = Requirements((ram,), "load")
    assert requirements.need(Resource.RAM) is ram
    assert requirements.need(Resource.DISK) is None
    assert [line.strip() for line in ram.lines()[1:]] == ["weights: 1.5 GiB", "cache: 1.5 GiB"]
    data = json.loads(json.dumps(requirements.to_dict()))
    assert data["needs"][0]["missing"] == 2 * GIB
    assert data["needs"][0]["items"][0] == {"label": "weights", "nbytes": 3 * GIB // 2}
    assert data["fits"] is False
