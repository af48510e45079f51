from __future__ import annotations

from pathlib import Path

import pytest

from engine.hardware.torch_build import find_torch_build, read_torch_build

VERSION_FILE = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.13.0+{suffix}'
debug = False
cuda: Optional[str] = {cuda}
git_version = 'cuda = 1'
hip: Optional[str] = None
"""


@pytest.mark.parametrize(
    ("suffix", "cuda", "has_cuda", "numbers"),
    [("cpu", "None", False, None), ("cu130", "'13.0'", True, (13, 0)), ("cu128", '"12.8"', True, (12, 8))],
)
def test_version_file(
    tmp_path: Path, suffix: str, cuda: str, has_cuda: bool, numbers: tuple[int, int] | None
) -> None:
    (tmp_path / "version.py").write_text(VERSION_FILE.format(suffix=suffix, cuda=cuda))
    build = read_torch_build(tmp_path)
    assert build.version == f"2.13.0+{suffix}"
    assert build.has_cuda is has_cuda
    assert build.cuda_version == numbers


@pytest.mark.parametrize("library", ["libtorch_cuda.so", "torch_cuda.dll"])
def test_a_frozen_program_has_only_libraries(tmp_path: Path, library: str) -> None:
    assert read_torch_build(tmp_path).has_cuda is False
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / library).touch()
    build = read_torch_build(tmp_path)
    assert build.has_cuda is True
    assert build.cuda_version is None


def test_the_installed_torch_is_read_as_torch_says_it_is() -> None:
    import torch

    build = find_torch_build()
    assert build is not None
    assert build.version == torch.__version__
    assert build.cuda == torch.version.cuda
