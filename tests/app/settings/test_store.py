import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from app.settings import BY_KEY, OPTIONS, SettingsError, SettingsStore, registry
from app.settings.option import Value
from engine.errors import FileError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "settings.toml"


def saved(path: Path) -> dict[str, object]:
    return tomllib.loads(path.read_text("utf-8"))


def test_without_a_file_everything_is_at_its_default(path: Path) -> None:
    settings = SettingsStore(path)
    assert {key: settings[key] for key in BY_KEY} == {key: option.default for key, option in BY_KEY.items()}
    assert settings.problems == []
    assert not path.exists()  # reading writes nothing


def test_a_change_is_on_the_disk_at_once(path: Path) -> None:
    settings = SettingsStore(path)
    settings.set(registry.TEMPERATURE, 0.25)
    settings.set("chat.system_prompt", "Answer in\nverse. 🎻")
    assert saved(path) == {
        "sampling": {"temperature": 0.25},
        "chat": {"system_prompt": "Answer in\nverse. 🎻"},
    }
    again = SettingsStore(path)
    assert again.get(registry.TEMPERATURE) == 0.25
    assert again["chat.system_prompt"] == "Answer in\nverse. 🎻"


def test_what_another_version_wrote_is_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(
        'future = 1\n[sampling]\ntypical_p = 0.5\ntop_k = 3\n[folders]\nlist = [{name = "x"}]\n', "utf-8"
    )
    settings = SettingsStore(path)
    settings.set(registry.TOP_K, 4)
    assert saved(path) == {
        "future": 1,
        "sampling": {"typical_p": 0.5, "top_k": 4},
        "folders": {"list": [{"name": "x"}]},
    }
    assert settings.problems == []


def test_what_another_window_changed_meanwhile_is_kept(path: Path) -> None:
    one, two = SettingsStore(path), SettingsStore(path)
    one.set(registry.TOP_K, 4)
    two.set(registry.THEME, "dark")
    assert saved(path) == {"sampling": {"top_k": 4}, "appearance": {"theme": "dark"}}


def test_a_wrong_value_falls_back_and_is_reported(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('chat = 3\n[sampling]\ntemperature = "hot"\ntop_k = 5\n', "utf-8")
    settings = SettingsStore(path)
    assert settings.get(registry.TEMPERATURE) == 0.7
    assert settings.get(registry.TOP_K) == 5
    assert settings.get(registry.SEND_ON_ENTER) is True
    reported = [problem.what for problem in settings.problems]
    assert "“Temperature” cannot be hot." in reported
    in_table = [option for option in OPTIONS if option.section == "chat"]
    assert len(reported) == len(in_table) + 1  # those of the table that is none, and the temperature
    assert all(str(path) in problem.why and problem.action for problem in settings.problems)

    settings.set(registry.TOP_P, 0.5)  # the wrong values stay for the user to see
    assert saved(path)["chat"] == 3
    settings.set(registry.SEND_ON_ENTER, False)
    settings.set(registry.TEMPERATURE, 1.0)
    assert saved(path) == {
        "sampling": {"temperature": 1.0, "top_k": 5, "top_p": 0.5},
        "chat": {"send_on_enter": False},
    }
    assert SettingsStore(path).problems == []


@pytest.mark.parametrize("content", [b"[sampling\n", b"\xff\xfe\x00", b"a = 1\na = 2\n", b"x = \x00"])
def test_an_unreadable_file_is_set_aside(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    settings = SettingsStore(path)
    (problem,) = settings.problems
    (aside,) = path.parent.iterdir()
    assert aside.name.startswith("settings.toml.unreadable-")
    assert aside.read_bytes() == content
    assert aside.name in problem.action
    assert settings.get(registry.THEME) == "system"
    settings.set(registry.THEME, "dark")
    assert SettingsStore(path).get(registry.THEME) == "dark"


def test_a_file_from_an_editor_on_windows_is_read(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbf[appearance]\r\ntheme = 'dark'\r\n")
    settings = SettingsStore(path)
    assert settings.get(registry.THEME) == "dark"
    assert settings.problems == []


def test_listeners_hear_of_real_changes(path: Path) -> None:
    settings = SettingsStore(path)
    heard: list[tuple[str, object]] = []
    unsubscribe = settings.subscribe(lambda key, value: heard.append((key, value)))
    settings.update({"appearance.theme": "dark", "sampling.top_k": 0})
    settings.set(registry.THEME, "dark")
    settings.reset(registry.THEME)
    unsubscribe()
    settings.set(registry.THEME, "light")
    assert heard == [("appearance.theme", "dark"), ("appearance.theme", "system")]


def test_one_wrong_value_changes_nothing(path: Path) -> None:
    settings = SettingsStore(path)
    with pytest.raises(SettingsError):
        settings.update({"appearance.theme": "dark", "sampling.top_k": -1})
    assert settings.get(registry.THEME) == "system"
    assert not path.exists()


def test_reset_leaves_what_the_user_did_not_choose(path: Path) -> None:
    settings = SettingsStore(path)
    settings.update({"appearance.theme": "dark", "model.path": "/models/x", "sampling.top_k": 9})
    settings.reset()
    assert settings.get(registry.THEME) == "system"
    assert settings.get(registry.MODEL_PATH) == "/models/x"
    assert saved(path) == {"appearance": {}, "model": {"path": "/models/x"}, "sampling": {}}


def test_a_file_that_cannot_be_written_leaves_the_setting_in_force(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    settings = SettingsStore(tmp_path / "file" / "settings.toml")
    heard: list[str] = []
    settings.subscribe(lambda key, _: heard.append(key))
    with pytest.raises(FileError) as caught:
        settings.set(registry.THEME, "dark")
    assert caught.value.action
    assert settings.get(registry.THEME) == "dark"
    assert heard == ["appearance.theme"]


def test_what_cannot_be_read_at_all_is_left_where_it_is(path: Path) -> None:
    path.mkdir(parents=True)
    settings = SettingsStore(path)
    (problem,) = settings.problems
    assert problem.what == "The settings could not be read."
    assert path.is_dir()
    assert settings.get(registry.THEME) == "system"
    with pytest.raises(FileError):
        settings.set(registry.THEME, "dark")


def test_in_memory_nothing_is_written() -> None:
    settings = SettingsStore(None)
    settings.set(registry.TOP_K, 2)
    assert settings["sampling.top_k"] == 2


@examples(deadline=None, max_examples=50)
@given(text=st.text(), number=st.floats(0, 10), whole=st.integers(-1, 2**63 - 1), flag=st.booleans())
def test_values_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, text: str, number: float, whole: int, flag: bool
) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    values: dict[str, Value] = {
        "chat.system_prompt": text,
        "sampling.temperature": number,
        "sampling.seed": whole,
        "chat.send_on_enter": flag,
    }
    SettingsStore(path).update(values)
    again = SettingsStore(path)
    assert again.problems == []
    assert {key: again[key] for key in values} == values


@examples(deadline=None)
@given(st.binary(max_size=60))
def test_no_content_of_the_file_stops_the_program(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    path.write_bytes(content)
    settings = SettingsStore(path)
    settings.set(registry.THEME, "dark")
    assert SettingsStore(path).get(registry.THEME) == "dark"
