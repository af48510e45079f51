"""Which torch is installed, found out without importing it (that takes seconds and hundreds of megabytes)."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

_VERSION = re.compile(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)
_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*(?:['\"]([^'\"]+)['\"]|None)", re.MULTILINE)
_CUDA_LIBRARIES = ("libtorch_cuda.so", "torch_cuda.dll")


@dataclass(frozen=True)
class TorchBuild:
    """The installed torch: its version, whether it was built with CUDA, and for which CUDA ("13.0")."""

    version: str
    has_cuda: bool
    cuda: str | None = None

    @property
    def cuda_version(self) -> tuple[int, int] | None:
        """The CUDA version as numbers; None if it is not known."""
        match = re.match(r"(\d+)\.(\d+)", self.cuda or "")
        return (int(match[1]), int(match[2])) if match else None


def find_torch_build() -> TorchBuild | None:
    """The installed torch; None if there is none."""
    try:
        spec = importlib.util.find_spec("torch")
    except ValueError:  # a torch that is half imported has no spec
        return None
    if spec is None or spec.origin is None:
        return None
    return read_torch_build(Path(spec.origin).parent)


def read_torch_build(package: Path) -> TorchBuild:
    """Read the build from torch's folder: its `version.py`, or, in a frozen program, its libraries."""
    try:
        text = (package / "version.py").read_text(encoding="utf-8")
    except OSError:
        text = ""
    version, cuda = _VERSION.search(text), _CUDA.search(text)
    if cuda is not None:
        return TorchBuild(version[1] if version else "unknown", cuda[1] is not None, cuda[1])
    has_library = any((package / "lib" / name).exists() for name in _CUDA_LIBRARIES)
    return TorchBuild(version[1] if version else "unknown", has_library)
