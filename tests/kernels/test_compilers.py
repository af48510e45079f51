"""Clang builds every instruction set without a warning; GCC built the extension itself on most systems."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEVELS = ("AVX2", "AVX512", "AVX512_VNNI", "AVX512_BF16", "AMX")


def assert_nothing_is_shared(archive: Path) -> None:
    """No object of an instruction set has a function that the linker may take for other objects, too.

    Such functions (inline ones, instances of templates) are weak symbols: the copy that is kept could have
    instructions that a CPU lacks. csrc/kernel.h has the rule.
    """
    objects, weak, current = set(), [], ""
    for line in subprocess.run(
        ["nm", str(archive)], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        if line.endswith(".o:"):
            current = line
        elif re.match(r"(kernel|quantise)_", current):
            objects.add(current)
            if re.search(r" [VWu] ", line):
                weak.append((current, line))
    assert len(objects) == len(LEVELS) + 4  # the portable kernels and three quantisers
    assert weak == []


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="other machines have the portable kernels only, and other systems list symbols in another form",
)
def test_clang_builds_every_instruction_set(tmp_path: Path) -> None:
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    if not (shutil.which("clang++") and shutil.which("nm") and cmake):
        pytest.skip("clang++, nm or CMake is not installed")
    configure = [cmake, "-S", str(ROOT), "-B", str(tmp_path)]
    options = ["-DCMAKE_CXX_COMPILER=clang++", "-DFIDDLER_EXTENSION=OFF", "-DFIDDLER_STRESS=ON"]
    configured = subprocess.run([*configure, *options], capture_output=True, text=True, check=False)
    assert configured.returncode == 0, configured.stderr
    build = [cmake, "--build", str(tmp_path), "--parallel", "2"]  # the program of `make sanitize`, too
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    output = built.stdout + built.stderr
    assert built.returncode == 0, output
    assert not re.search(r"\bwarning\b", output), output
    assert_nothing_is_shared(tmp_path / "libfiddler_kernels.a")
    flags = (tmp_path / "CMakeCache.txt").read_text()
    for level in LEVELS:
        assert re.search(rf"FIDDLER_FLAGS_{level}:INTERNAL=1", flags), f"clang++ lacks {level}"
