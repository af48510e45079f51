from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import isa as isa_module
from kernels.cpu import CpuPool
from kernels.errors import IsaError
from kernels.isa import MAX_ISA_VARIABLE, Isa, available_isas, default_isa

# What the operating system reports; a level needs all of its flags.
LINUX_FLAGS = {
    Isa.AVX2: {"avx2", "fma"},
    Isa.AVX512: {"avx512f", "avx512bw", "avx512vl"},
    Isa.AVX512_BF16: {"avx512_bf16"},
    Isa.AMX: {"amx_tile", "amx_bf16"},
}


def test_levels_are_ordered() -> None:
    levels = [Isa.PORTABLE, Isa.AVX2, Isa.AVX512, Isa.AVX512_BF16, Isa.AMX]
    assert sorted(levels, key=str) != levels  # alphabetically amx would be first
    assert sorted([levels[3], levels[0], levels[4], levels[2], levels[1]]) == levels
    for low, high in itertools.combinations(levels, 2):
        assert low < high
        assert low <= high
        assert high > low
        assert high >= low
        assert not high < low
        assert not low >= high
    assert Isa.AVX2 <= Isa.AVX2
    assert Isa.AVX2 >= Isa.AVX2


def test_available_levels_agree_with_the_operating_system() -> None:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists() or "flags" not in cpuinfo.read_text():
        assert available_isas()[0] is Isa.PORTABLE
        return
    line = next(line for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))
    flags = set(line.split(":")[1].split())
    expected = [Isa.PORTABLE]
    for level, needed in LINUX_FLAGS.items():
        if not needed <= flags:
            break
        expected.append(level)
    assert list(available_isas()) == expected


def test_the_default_is_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    for unset in (None, "", "  "):
        if unset is None:
            monkeypatch.delenv(MAX_ISA_VARIABLE, raising=False)
        else:
            monkeypatch.setenv(MAX_ISA_VARIABLE, unset)
        assert default_isa() is available_isas()[-1]


def test_the_variable_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    for level in available_isas():
        for text in (level.value, f" {level.value.upper()} "):
            monkeypatch.setenv(MAX_ISA_VARIABLE, text)
            assert default_isa() is level
            with CpuPool(1) as pool:
                assert pool.isa is level


def test_an_unknown_level_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA_VARIABLE, "sse9")
    with pytest.raises(IsaError, match=r"'sse9'.*portable, avx2, avx512, avx512_bf16, amx"):
        default_isa()


def test_a_cap_above_the_machine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa_module, "available_isas", lambda: (Isa.PORTABLE, Isa.AVX2))
    for name in ("avx512", "avx512_bf16", "amx"):
        monkeypatch.setenv(MAX_ISA_VARIABLE, name)
        with pytest.raises(IsaError, match=f"asks for {name}, but .* is avx2"):
            default_isa()
        with pytest.raises(IsaError, match=name):
            CpuPool(1, Isa(name))


def test_looking_at_the_machine_does_not_import_torch() -> None:
    code = (
        "import sys, kernels.isa, kernels.threads, kernels.errors;"
        "kernels.isa.available_isas(); kernels.threads.usable_cores(); kernels.threads.usable_cpus();"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
