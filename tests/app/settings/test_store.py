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
    settings.set(registry.VRAM_BUDGET, 0.25)
    settings.set("model.path", "Answer in\nverse. 🎻")
    assert saved(path) == {
        "engine": {"vram_budget_gib": 0.25},
        "model": {"path": "Answer in\nverse. 🎻"},
    }
    again = SettingsStore(path)
    assert again.get(registry.VRAM_BUDGET) == 0.25
    assert again["model.path"] == "Answer in\nverse. 🎻"


def test_what_another_version_wrote_is_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(
        'future = 1\n[engine]\ntypical_p = 0.5\nthreads = 3\n[folders]\nlist = [{name = "x"}]\n', "utf-8"
    )
    settings = SettingsStore(path)
    settings.set(registry.THREADS, 4)
    assert saved(path) == {
        "future": 1,
        "engine": {"typical_p": 0.5, "threads": 4},
        "folders": {"list": [{"name": "x"}]},
    }
    assert settings.problems == []


def test_what_another_window_changed_meanwhile_is_kept(path: Path) -> None:
    one, two = SettingsStore(path), SettingsStore(path)
    one.set(registry.THREADS, 4)
    two.set(registry.THEME, "dark")
    assert saved(path) == {"engine": {"threads": 4}, "appearance": {"theme": "dark"}}


def test_a_wrong_value_falls_back_and_is_reported(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('chat = 3\n[engine]\nvram_budget_gib = "hot"\nthreads = 5\n', "utf-8")
    settings = SettingsStore(path)
    assert settings.get(registry.VRAM_BUDGET) == 0
    assert settings.get(registry.THREADS) == 5
    assert settings.get(registry.SEND_ON_ENTER) is True
    reported = [problem.what for problem in settings.problems]
    assert "“Graphics memory to use (GiB)” cannot be hot." in reported
    in_table = [option for option in OPTIONS if option.section == "chat"]
    assert len(reported) == len(in_table) + 1  # those of the table that is none, and the memory
    assert all(str(path) in problem.why and problem.action for problem in settings.problems)

    settings.set(registry.RAM_RESERVE, 0.5)  # the wrong values stay for the user to see
    assert saved(path)["chat"] == 3
    settings.set(registry.SEND_ON_ENTER, False)
    settings.set(registry.VRAM_BUDGET, 1.0)
    assert saved(path) == {
        "engine": {"vram_budget_gib": 1.0, "threads": 5, "ram_reserve_gib": 0.5},
        "chat": {"send_on_enter": False},
    }
    assert SettingsStore(path).problems == []


@pytest.mark.parametrize("content", [b"[engine\n", b"\xff\xfe\x00", b"a = 1\na = 2\n", b"x = \x00"])
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
    settings.update({"appearance.theme": "dark", "engine.threads": 0})
    settings.set(registry.THEME, "dark")
    settings.reset(registry.THEME)
    unsubscribe()
    settings.set(registry.THEME, "light")
    assert heard == [("appearance.theme", "dark"), ("appearance.theme", "system")]


def test_one_wrong_value_changes_nothing(path: Path) -> None:
    settings = SettingsStore(path)
    with pytest.raises(SettingsError):
        settings.update({"appearance.theme": "dark", "engine.threads": -1})
    assert settings.get(registry.THEME) == "system"
    assert not path.exists()


def test_reset_leaves_what_the_user_did_not_choose(path: Path) -> None:
    settings = SettingsStore(path)
    settings.update({"appearance.theme": "dark", "model.path": "/models/x", "engine.threads": 9})
    settings.reset()
    assert settings.get(registry.THEME) == "system"
    assert settings.get(registry.MODEL_PATH) == "/models/x"
    assert saved(path) == {"appearance": {}, "model": {"path": "/models/x"}, "engine": {}}


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


def test_settings_that_cannot_be_read_now_are_not_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SettingsStore(path).set(registry.THREADS, 4)

    def fail(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        settings = SettingsStore(path)  # such as from a folder of another user
        with pytest.raises(FileError, match=r"could not be saved.*permission") as caught:
            settings.set(registry.THEME, "dark")
        assert caught.value.action
    assert settings.get(registry.THEME) == "dark"
    assert saved(path) == {"engine": {"threads": 4}}
    settings.set(registry.THEME, "light")  # it can be read again
    assert saved(path) == {"engine": {"threads": 4}, "appearance": {"theme": "light"}}


def test_what_an_earlier_version_had_can_be_read_and_forgotten(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("[sampling]\nseed = 3\nx = 1\n[engine]\nthreads = 2\n", "utf-8")
    settings = SettingsStore(path)
    assert settings.stored("sampling.seed") == 3
    assert settings.stored("sampling.none") is settings.stored("nothing.seed") is None
    settings.forget(["sampling.seed", "nothing.seed"])
    assert settings.stored("sampling.seed") is None
    assert saved(path) == {"sampling": {"x": 1}, "engine": {"threads": 2}}


def test_in_memory_nothing_is_written() -> None:
    settings = SettingsStore(None)
    settings.set(registry.THREADS, 2)
    assert settings["engine.threads"] == 2


@examples(deadline=None, max_examples=50)
@given(text=st.text(), number=st.floats(0, 10), whole=st.integers(0, 10_000_000), flag=st.booleans())
def test_values_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, text: str, number: float, whole: int, flag: bool
) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    values: dict[str, Value] = {
        "model.path": text,
        "engine.vram_budget_gib": number,
        "engine.context_length": whole,
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
