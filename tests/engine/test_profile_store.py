from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.checkpoint.inspect import ModelInfo
from engine.errors import FileError
from engine.hardware import CpuInfo, DiskInfo, Hardware, MemoryInfo
from engine.known_models import starter
from engine.latency import Curve, LatencyModel
from engine.options import LoadOptions
from engine.profile import Profile
from engine.profile_store import (
    ProfileState,
    file_name,
    find_profile,
    find_profile_for,
    model_parts,
    save_profile,
)

CPU = CpuInfo("Ryzen 9", "avx2", ("avx2",), (), 16, 8, 8, 8)
MACHINE = Hardware(CPU, (), MemoryInfo(1, 1), DiskInfo("/", 1, 1), "Linux")
OTHER = replace(MACHINE, cpu=replace(CPU, name="Ryzen 7"))


@pytest.fixture
def info(tmp_path: Path) -> ModelInfo:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(20_000))
    return starter(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "profiles"


def measured(hardware: Hardware, info: ModelInfo, created: str = "2026-01-01") -> Profile:
    latency = LatencyModel(Curve.fit([(1, 1e-3), (2, 1.5e-3)]), 1e-3)
    parts = hardware.fingerprint_parts()
    return Profile(info.name, parts, model_parts(info), created, 8, latency, np.ones((2, 2)), (), 0, 0.1, 0.1)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_nothing_saved_is_missing(info: ModelInfo, folder: Path) -> None:
    found = find_profile(MACHINE, info, folder=folder)
    assert (found.state, found.profile) == (ProfileState.MISSING, None)
    assert "not been calibrated" in found.message
    assert not folder.exists()  # looking makes no folder


def test_a_saved_profile_is_found_again(info: ModelInfo, folder: Path) -> None:
    path = save_profile(measured(MACHINE, info), folder)
    found = find_profile(MACHINE, info, folder=folder)
    assert found.state is ProfileState.VALID
    assert found.profile is not None
    assert found.profile.measured_decode == 0.1
    assert path.name == file_name(MACHINE.fingerprint_parts(), model_parts(info))


def test_a_profile_of_another_machine_is_named_never_used_never_deleted(
    info: ModelInfo, folder: Path
) -> None:
    save_profile(measured(OTHER, info), folder)
    before = snapshot(folder)
    found = find_profile(MACHINE, info, folder=folder)
    assert (found.state, found.profile) == (ProfileState.HARDWARE_CHANGED, None)
    assert "(processor: Ryzen 7, now Ryzen 9)" in found.message
    save_profile(measured(MACHINE, info), folder)
    assert before.items() <= snapshot(folder).items()
    assert find_profile(MACHINE, info, folder=folder).state is ProfileState.VALID
    assert find_profile(OTHER, info, folder=folder).state is ProfileState.VALID


def test_a_foreign_file_under_our_name_is_not_used(info: ModelInfo, folder: Path) -> None:
    """Copied from another computer and renamed: what it says inside counts."""
    foreign = save_profile(measured(OTHER, info), folder)
    foreign.rename(folder / file_name(MACHINE.fingerprint_parts(), model_parts(info)))
    found = find_profile(MACHINE, info, folder=folder)
    assert (found.state, found.profile) == (ProfileState.HARDWARE_CHANGED, None)


def test_other_threads_are_another_machine(info: ModelInfo, folder: Path) -> None:
    save_profile(measured(MACHINE, info), folder)
    usual = MACHINE.cpu.default_threads
    assert find_profile(MACHINE, info, threads=usual, folder=folder).state is ProfileState.VALID
    found = find_profile(MACHINE, info, threads=4, folder=folder)
    assert f"(CPU threads: {usual}, now 4)" in found.message


def test_changed_weights_are_seen(info: ModelInfo, folder: Path) -> None:
    save_profile(measured(MACHINE, info), folder)
    with (info.path / "model.safetensors").open("r+b") as file:
        file.seek(10_001)
        file.write(b"\x01")
    found = find_profile(MACHINE, info, folder=folder)
    assert (found.state, found.profile) == (ProfileState.MODEL_CHANGED, None)
    assert "(the content of its files)" in found.message


def test_another_model_is_not_a_changed_one(info: ModelInfo, folder: Path) -> None:
    save_profile(measured(MACHINE, info), folder)
    other = replace(info, name="Mixtral")
    assert find_profile(MACHINE, other, folder=folder).state is ProfileState.MISSING


def test_a_moved_model_keeps_its_profile(info: ModelInfo, folder: Path, tmp_path: Path) -> None:
    save_profile(measured(MACHINE, info), folder)
    moved = info.path.rename(tmp_path / "elsewhere")
    assert find_profile(MACHINE, replace(info, path=moved), folder=folder).state is ProfileState.VALID


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe\x00", b'{"version": 99}'])
def test_a_damaged_file_is_a_state_and_is_kept_aside(info: ModelInfo, folder: Path, damage: bytes) -> None:
    path = save_profile(measured(MACHINE, info), folder)
    path.write_bytes(damage)
    found = find_profile(MACHINE, info, folder=folder)
    assert (found.state, found.profile) == (ProfileState.UNREADABLE, None)
    assert "Calibrate again" in found.message
    save_profile(measured(MACHINE, info), folder)
    assert find_profile(MACHINE, info, folder=folder).state is ProfileState.VALID
    assert damage in snapshot(folder).values()


def test_a_calibration_of_an_older_version_is_not_used_and_says_why(info: ModelInfo, folder: Path) -> None:
    path = save_profile(measured(MACHINE, info), folder)
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
    found = find_profile(MACHINE, info, folder=folder)
    assert (found.state, found.profile) == (ProfileState.UNREADABLE, None)
    assert "older version" in found.message
    assert "Calibrate again" in found.message


def test_a_damaged_file_of_another_machine_is_in_nobodys_way(info: ModelInfo, folder: Path) -> None:
    save_profile(measured(OTHER, info), folder).write_text("{")
    assert find_profile(MACHINE, info, folder=folder).state is ProfileState.MISSING


def test_the_newest_of_several_tells_what_changed(info: ModelInfo, folder: Path) -> None:
    third = replace(MACHINE, cpu=replace(CPU, name="Xeon"))
    save_profile(measured(OTHER, info, "2026-01-01"), folder)
    save_profile(measured(third, info, "2026-03-01"), folder)
    assert "(processor: Xeon, now Ryzen 9)" in find_profile(MACHINE, info, folder=folder).message


def test_a_disk_that_cannot_be_written_is_reported(info: ModelInfo, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError):
        save_profile(measured(MACHINE, info), tmp_path / "file")


def test_the_default_folder_is_the_users(
    info: ModelInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path / "data"))
    path = save_profile(measured(MACHINE, info))
    assert path.parent == tmp_path / "data" / "profiles"
    assert json.loads(path.read_text())["model_name"] == info.name
    assert find_profile(MACHINE, info).state is ProfileState.VALID


def test_a_calibration_is_for_one_precision_and_both_are_kept(info: ModelInfo, folder: Path) -> None:
    full = save_profile(measured(MACHINE, info), folder)
    found = find_profile(MACHINE, info, precision="int4", folder=folder)
    assert (found.state, found.profile) == (ProfileState.PRECISION_CHANGED, None)
    assert "in bf16" in found.message
    assert "in 4 bits" in found.message
    light = save_profile(replace(measured(MACHINE, info), precision="int4", measured_decode=0.03), folder)
    assert full != light
    assert sorted(snapshot(folder)) == sorted([full.name, light.name])
    for precision, seconds in (("bf16", 0.1), ("int4", 0.03)):
        found = find_profile(MACHINE, info, precision=precision, folder=folder)
        assert found.profile is not None
        assert (found.profile.precision, found.profile.measured_decode) == (precision, seconds)
    assert find_profile(OTHER, info, precision="int4", folder=folder).state is ProfileState.HARDWARE_CHANGED


def test_a_calibration_from_before_there_was_a_choice_is_one_in_bf16(info: ModelInfo, folder: Path) -> None:
    path = save_profile(measured(MACHINE, info), folder)
    data = json.loads(path.read_text())
    del data["precision"]
    path.write_text(json.dumps(data))
    found = find_profile(MACHINE, info, folder=folder)
    assert found.profile is not None
    assert found.profile.precision == "bf16"


def test_a_precision_that_does_not_exist_is_unreadable(info: ModelInfo, folder: Path) -> None:
    path = save_profile(measured(MACHINE, info), folder)
    path.write_text(path.read_text().replace('"bf16"', '"int3"'))
    assert find_profile(MACHINE, info, folder=folder).state is ProfileState.UNREADABLE


def test_profiles_with_and_without_rounded_activations_are_kept_apart(info: ModelInfo, folder: Path) -> None:
    rounding = replace(measured(MACHINE, info), precision="int4")
    save_profile(rounding, folder)
    assert find_profile(MACHINE, info, precision="int4", folder=folder).state is ProfileState.VALID
    found = find_profile(MACHINE, info, precision="int4", exact=True, folder=folder)
    assert (found.state, found.profile) == (ProfileState.ACTIVATIONS_CHANGED, None)
    assert "they are forbidden now. Calibrate again" in found.message
    save_profile(replace(rounding, exact_activations=True, measured_decode=0.2), folder)
    for exact, seconds in ((False, 0.1), (True, 0.2)):
        found = find_profile(MACHINE, info, precision="int4", exact=exact, folder=folder)
        assert found.profile is not None
        assert found.profile.measured_decode == seconds


def test_a_profile_without_rounded_activations_is_not_used_where_they_are_allowed(
    info: ModelInfo, folder: Path
) -> None:
    save_profile(replace(measured(MACHINE, info), precision="int8", exact_activations=True), folder)
    found = find_profile(MACHINE, info, precision="int8", folder=folder)
    assert (found.state, found.profile) == (ProfileState.ACTIVATIONS_CHANGED, None)
    assert "they are allowed now" in found.message


def test_the_options_say_which_profile_fits(
    info: ModelInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    save_profile(replace(measured(MACHINE, info), precision="int4", exact_activations=True))
    for options, state in (
        (LoadOptions(precision="int4", exact_activations=True), ProfileState.VALID),
        (LoadOptions(precision="int4"), ProfileState.ACTIVATIONS_CHANGED),
        (LoadOptions(precision="int8", exact_activations=True), ProfileState.PRECISION_CHANGED),
    ):
        assert find_profile_for(options, MACHINE, info).state is state
    save_profile(measured(MACHINE, info))  # in bf16 nothing is rounded in any case
    assert find_profile_for(LoadOptions(exact_activations=True), MACHINE, info).state is ProfileState.VALID
