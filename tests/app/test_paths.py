from pathlib import Path

from app import paths


def test_the_apps_files_lie_in_the_data_folder(data_dir: Path) -> None:
    assert paths.data_dir() == data_dir
    assert paths.database_path().parent == paths.settings_path().parent == data_dir
    assert paths.log_path().is_relative_to(data_dir)
    assert len({paths.database_path(), paths.settings_path(), paths.log_path()}) == 3


def test_exports_are_offered_outside_of_it(data_dir: Path) -> None:
    assert paths.documents_dir().is_absolute()
    assert not paths.documents_dir().is_relative_to(data_dir)
