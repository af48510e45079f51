import tomllib

import pytest

from installer import bootstrap


@pytest.fixture
def no_nvidia(monkeypatch):
    monkeypatch.delenv("TORCH", raising=False)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)


def test_without_an_nvidia_driver_the_tested_torch_is_installed(no_nvidia):
    assert bootstrap.torch_requirement() == ["torch==2.13.0"]


def test_with_an_nvidia_driver_the_newest_torch_is_installed(monkeypatch):
    monkeypatch.delenv("TORCH", raising=False)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    assert bootstrap.torch_requirement() == ["torch"]


def test_the_torch_variable_is_handed_to_pip_word_by_word(monkeypatch):
    monkeypatch.setenv("TORCH", "torch --index-url https://example.org/whl")
    assert bootstrap.torch_requirement() == ["torch", "--index-url", "https://example.org/whl"]


def test_a_changed_kernel_source_means_building_again(monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    source = tmp_path / "kernels" / "csrc" / "pool.cpp"
    source.parent.mkdir(parents=True)
    source.write_text("int x;")
    before = bootstrap.setup_key()
    source.write_text("int y;")
    assert bootstrap.setup_key() != before


@pytest.mark.parametrize(
    ("key", "torch", "current"),
    [("a", "", True), ("a", "torch==2.13.0", True), ("a", "torch==2.14.0", False), ("b", "", False)],
)
def test_an_installation_holds_until_its_sources_or_the_wanted_torch_change(key, torch, current):
    assert bootstrap.is_current("a\ntorch==2.13.0", key, torch) is current


def test_an_unknown_command_is_a_usage_error(capsys):
    assert bootstrap.main(["fly"]) == 2
    assert "run, test, setup, package" in capsys.readouterr().err


def test_a_failing_step_ends_with_its_command_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr(bootstrap, "setup", lambda **_: bootstrap.run("false"))
    assert bootstrap.main(["run"]) == 1
    assert "`false` failed" in capsys.readouterr().err


def test_an_old_python_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (99, 0))
    with pytest.raises(bootstrap.SetupError, match=r"Python 99\.0 or newer is needed.*PYTHON="):
        bootstrap.check_python()


def test_the_starter_wheel_is_found_where_pip_puts_it(monkeypatch, tmp_path):
    recipe = tomllib.loads((bootstrap.ROOT / "assets" / "starter" / "recipe.toml").read_text())["package"]
    requirement, sha256 = bootstrap.starter_wheel()
    assert sha256 == recipe["sha256"]
    monkeypatch.setattr(bootstrap, "DOWNLOADS", tmp_path)
    assert bootstrap.fetched(requirement) is None
    (tmp_path / recipe["wheel"]).touch()
    assert bootstrap.fetched(requirement) == tmp_path / recipe["wheel"]
