"""The user's presets on the disk, and which one new chats take."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.presets.errors import PresetError
from app.presets.format import from_bytes, to_text
from app.presets.legacy import take_over_settings
from app.presets.parameters import Parameters, answers_together, generation_params
from app.presets.preset import ChatSetup, Preset, is_as_preset, setup_from, take_preset
from app.presets.shipped import BALANCED, SHIPPED
from app.presets.store import PresetStore
from app.settings import SettingsStore
from engine.errors import FileError
from engine.params import GenerationParams, OverflowPolicy, SamplingParams

MODEL = GenerationParams(SamplingParams(temperature=0, top_k=3), max_tokens=200, stop=("#",), stop_loops=True)
SETUP = ChatSetup("precise", "Be brief.", Parameters(temperature=0.3, answers=2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "presets.json"


@pytest.fixture
def store(path: Path) -> PresetStore:
    return PresetStore(path, SettingsStore(None))


def test_a_saved_preset_is_there_after_a_restart(store: PresetStore, path: Path) -> None:
    preset = store.add("  My \n own ", SETUP)
    assert preset.name == "My own"
    again = PresetStore(path, SettingsStore(None))
    assert again.own == (preset,)
    assert again.find(preset.id) == Preset(preset.id, "My own", "Be brief.", SETUP.parameters)
    assert not again.problems


def test_presets_are_renamed_changed_deleted_and_brought_back(store: PresetStore, path: Path) -> None:
    heard: list[int] = []
    stop = store.subscribe(lambda: heard.append(len(store.own)))
    preset = store.add("B", SETUP)
    store.add("A", SETUP)
    assert [each.name for each in store.own] == ["A", "B"]
    assert store.rename(preset.id, "b").name == "b"  # its own name is not taken
    changed = store.change(preset.id, ChatSetup("x", "", Parameters(beams=3)))
    assert (changed.system_prompt, changed.parameters.beams) == ("", 3)
    deleted = store.delete(preset.id)
    assert store.find(preset.id) is None
    store.restore(deleted)
    assert PresetStore(path, SettingsStore(None)).find(preset.id) == changed == deleted
    assert heard == [1, 2, 2, 2, 1, 2]
    stop()
    store.delete(preset.id)
    assert len(heard) == 6


@pytest.mark.parametrize("name", ["", " \n ", "precise", "BALANCED (the model's own values)", "mine"])
def test_a_name_is_refused_that_is_empty_or_taken(store: PresetStore, path: Path, name: str) -> None:
    store.add("Mine", SETUP)
    before = path.read_bytes()
    with pytest.raises(PresetError):
        store.add(name, SETUP)
    assert path.read_bytes() == before


def test_shipped_presets_cannot_be_changed(store: PresetStore) -> None:
    for operation in (lambda: store.delete("code"), lambda: store.rename("code", "x")):
        with pytest.raises(PresetError, match="cannot be changed"):
            operation()
    assert store.all == SHIPPED
    assert len({preset.id for preset in SHIPPED}) == len(SHIPPED)


def test_what_cannot_be_saved_changes_nothing(store: PresetStore, path: Path) -> None:
    path.parent.parent.mkdir(exist_ok=True)
    path.parent.write_text("a file in the folder's place")
    with pytest.raises(FileError):
        store.add("Mine", SETUP)
    assert store.own == ()


def test_a_damaged_file_is_set_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("{")
    store = PresetStore(path, SettingsStore(None))
    assert store.all == SHIPPED
    (problem,) = store.problems
    (aside,) = path.parent.glob("presets.json.unreadable-*")
    assert aside.name in problem.action
    assert aside.read_text() == "{"
    store.add("New", SETUP)
    assert path.exists()


def test_the_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    newer = to_text([]).replace('"version": 1', '"version": 2')
    path.write_text(newer)
    store = PresetStore(path, SettingsStore(None))
    assert "newer version" in store.problems[0].why
    with pytest.raises(PresetError, match="newer version"):
        store.add("New", SETUP)
    assert path.read_text() == newer


def test_an_import_adds_what_is_new_and_replaces_nothing(store: PresetStore) -> None:
    mine = store.add("Mine", SETUP)
    file = from_bytes(to_text(store.own).encode(), "x")
    assert store.take_in(file).known == 1
    assert store.own == (mine,)

    store.change(mine.id, ChatSetup("", "Other."))
    done = store.take_in([*file, Preset("f", "Precise"), Preset("g", "Precise")])
    assert [preset.name for preset in done.added] == ["Mine (2)", "Precise (2)", "Precise (3)"]
    assert done.known == 0
    assert len({preset.id for preset in store.own}) == 4
    other = store.find(mine.id)
    assert other is not None
    assert other.system_prompt == "Other."


def test_an_export_is_imported_elsewhere_as_it_was(store: PresetStore) -> None:
    store.add("A", SETUP)
    store.add("ä" * 200, SETUP)
    text = to_text(store.own)
    elsewhere = PresetStore(None, SettingsStore(None))
    elsewhere.take_in(from_bytes(text.encode(), "x"))
    assert to_text(elsewhere.own) == text


def test_new_chats_take_the_default(store: PresetStore) -> None:
    assert store.default == BALANCED
    mine = store.add("Mine", SETUP)
    store.set_default(mine.id)
    assert store.default == mine
    store.delete(mine.id)
    assert store.default == BALANCED


def test_parameters_replace_the_models_values_where_they_are_set() -> None:
    assert generation_params(Parameters(), MODEL) == MODEL
    own = Parameters(
        temperature=1, top_p=0.5, seed=0, max_tokens=7, answers=3, overflow=OverflowPolicy.KEEP_LATEST
    )
    params = generation_params(own, MODEL)
    assert params == GenerationParams(
        SamplingParams(1.0, 3, 0.5, seed=0),
        max_tokens=7,
        stop=("#",),
        stop_loops=True,
        overflow=OverflowPolicy.KEEP_LATEST,
    )
    assert answers_together(own, params) == 3
    greedy = Parameters(answers=3)
    assert answers_together(greedy, generation_params(greedy, MODEL)) == 1
    search = generation_params(Parameters(temperature=1, beams=2, answers=5), MODEL)
    assert (search.beams, search.answers) == (2, 2)


def test_a_prompt_written_for_the_chat_outlives_a_preset_without_one() -> None:
    code, precise = Preset("c", "Code", "Program."), Preset("p", "Precise", "", Parameters(top_k=1))
    setup = setup_from(code)
    assert take_preset(setup, code, precise) == setup_from(precise)
    mine = ChatSetup("c", "Mine.")
    assert take_preset(mine, code, precise) == ChatSetup("p", "Mine.", precise.parameters)
    assert take_preset(mine, None, code) == setup_from(code)
    assert is_as_preset(take_preset(mine, code, precise), precise)
    assert not is_as_preset(mine, code)


def test_settings_of_a_version_without_presets_become_one(tmp_path: Path, path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        '[chat]\nsystem_prompt = "Be brief."\nsend_on_enter = false\n'
        "[sampling]\nuse_model_defaults = false\ntemperature = 0.25\ntop_k = -5\nseed = -1\n"
    )
    settings = SettingsStore(file)
    store = PresetStore(path, settings)
    take_over_settings(settings, store)
    assert not store.problems
    assert store.default.label == "My settings"
    assert store.default.system_prompt == "Be brief."
    assert store.default.parameters == Parameters(0.25, 0, 1.0, 0.0, 1.0, None, 1024)
    text = file.read_text()
    assert "temperature" not in text
    assert "system_prompt" not in text
    assert "send_on_enter" in text
    again = SettingsStore(file)
    store = PresetStore(path, again)
    take_over_settings(again, store)
    assert len(store.own) == 1


def test_a_seed_alone_is_taken_over_with_the_models_values(tmp_path: Path, path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[sampling]\nuse_model_defaults = true\ntemperature = 0.25\nseed = 42\n")
    settings = SettingsStore(file)
    store = PresetStore(path, settings)
    take_over_settings(settings, store)
    assert store.default.parameters == Parameters(seed=42)


def test_untouched_settings_become_no_preset(tmp_path: Path, path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[sampling]\nuse_model_defaults = true\nseed = -1\n")
    settings = SettingsStore(file)
    store = PresetStore(path, settings)
    take_over_settings(settings, store)
    assert store.own == ()
    assert not path.exists()
    assert "seed" not in file.read_text()
