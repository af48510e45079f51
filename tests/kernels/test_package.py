"""Our `kernels` must not be taken for the Hugging Face package of the same name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kernels
from kernels import native
from kernels.errors import NativeMissingError

ROOT = Path(__file__).parents[2]


def test_transformers_does_not_take_it_for_theirs() -> None:
    code = (
        "import kernels, transformers.utils;"
        f"assert kernels.__file__.startswith({str(ROOT)!r}), kernels.__file__;"
        "assert not transformers.utils.is_kernels_available()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_is_light_and_has_no_version() -> None:
    assert [type(node) for node in ast.parse(Path(kernels.__file__).read_text()).body] == [ast.Expr]


def test_a_missing_extension_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kernels._native", None)
    with pytest.raises(NativeMissingError, match=r"cannot be loaded .*pip install"):
        native.load()
