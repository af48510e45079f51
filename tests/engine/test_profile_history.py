"""Every calibration is kept, told apart from the one in use, and can be taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import FileError
from engine.latency import Curve, LatencyModel
from engine.profile import Profile
from engine.profile_history import FOLDER, history, keep
from engine.profile_store import file_name, save_profile

LATENCY = LatencyModel(Curve.fit([(1, 1e-3), (2, 1.5e-3)]), 1e-3)


def profile(
    created: str, measured: float = 0.1, machine: str = "Ryzen 9", precision: str = "bf16"
) -> Profile:
    return Profile(
        "Starter model",
        {"processor": machine},
        {"name": "Starter model"},
        created,
        8,
        LATENCY,
        np.ones((2, 2)),
        (),
        0,
        0.1,
        measured,
        precision=precision,
    )


def dates(folder: Path, *, in_use: bool | None = None) -> list[str]:
    kept = history(folder).kept
    return [each.profile.created for each in kept if in_use is None or each.in_use is in_use]


def test_nothing_was_kept_where_nothing_was_calibrated(tmp_path: Path) -> None:
    assert history(tmp_path / "profiles").kept == ()
    assert not (tmp_path / "profiles").exists()


def test_every_calibration_is_kept_and_the_last_is_in_use(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-03", "2026-01-02"):
        save_profile(profile(day), tmp_path)
    assert dates(tmp_path) == ["2026-01-03", "2026-01-02", "2026-01-01"]
    assert dates(tmp_path, in_use=True) == ["2026-01-02"]  # the last saved counts


def test_an_earlier_one_is_taken_back_and_none_is_lost(tmp_path: Path) -> None:
    first, second = profile("2026-01-01", 0.1), profile("2026-01-02", 0.2)
    save_profile(first, tmp_path)
    path = save_profile(second, tmp_path)
    save_profile(history(tmp_path).kept[1].profile, tmp_path)
    assert Profile.from_json(path.read_text("utf-8")).to_json() == first.to_json()
    assert dates(tmp_path, in_use=True) == ["2026-01-01"]
    assert dates(tmp_path) == ["2026-01-02", "2026-01-01"]
    save_profile(second, tmp_path)
    assert dates(tmp_path, in_use=True) == ["2026-01-02"]
    assert len(list((tmp_path / FOLDER).iterdir())) == 2


def test_one_from_before_there_was_a_history_is_kept_when_it_is_replaced(tmp_path: Path) -> None:
    old = profile("2025-12-01")
    (tmp_path / file_name(old.hardware, old.model)).write_text(old.to_json(), "utf-8")
    assert dates(tmp_path, in_use=True) == ["2025-12-01"]
    save_profile(profile("2026-01-01"), tmp_path)
    assert dates(tmp_path) == ["2026-01-01", "2025-12-01"]


def test_each_machine_and_precision_has_its_own_in_use(tmp_path: Path) -> None:
    save_profile(profile("2026-01-01"), tmp_path)
    save_profile(profile("2026-01-02", machine="Ryzen 7"), tmp_path)
    save_profile(profile("2026-01-03", precision="int4"), tmp_path)
    assert dates(tmp_path, in_use=True) == ["2026-01-03", "2026-01-02", "2026-01-01"]


def test_two_in_the_same_second_are_both_kept(tmp_path: Path) -> None:
    save_profile(profile("2026-01-01", 0.1), tmp_path)
    save_profile(profile("2026-01-01", 0.2), tmp_path)
    assert len(history(tmp_path).kept) == 2


def test_a_damaged_one_hides_no_other_and_is_left_alone(tmp_path: Path) -> None:
    save_profile(profile("2026-01-01"), tmp_path)
    [file] = (tmp_path / FOLDER).iterdir()
    file.write_bytes(b"\xff\x00{")
    save_profile(profile("2026-01-01"), tmp_path)  # the same name would fit
    found = history(tmp_path)
    assert [each.in_use for each in found.kept] == [True]
    assert found.unreadable == (file.name,)
    assert file.read_bytes() == b"\xff\x00{"


@given(st.text(max_size=40))
def test_any_date_makes_a_name_within_the_folder(created: str) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = keep(replace(profile(""), created=created), "a-b.json", Path(folder))
        assert path.parent == Path(folder) / FOLDER
        assert path.name.startswith("a-b.")


def test_what_cannot_be_kept_is_said_and_what_was_in_use_stays(tmp_path: Path) -> None:
    path = save_profile(profile("2026-01-01"), tmp_path)
    before = path.read_bytes()
    blocked = tmp_path / FOLDER
    for file in blocked.iterdir():
        file.unlink()
    blocked.rmdir()
    blocked.write_text("not a folder")
    with pytest.raises(FileError):
        save_profile(profile("2026-01-02"), tmp_path)
    assert path.read_bytes() == before
