"""The processor: its name, instruction sets, and the cores this process may use."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from engine.errors import HardwareError
from engine.hardware.facts import CpuInfo
from kernels.cgroup import CgroupLimits
from kernels.errors import KernelsError
from kernels.isa import available_isas, default_isa
from kernels.threads import allowed_cpus, detect_topology

# The features that decide how fast experts run, in the kernel's spelling.
_FEATURES = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512_bf16",
    "avx512_vnni",
    "amx_bf16",
    "amx_int8",
)


def detect_cpu(limits: CgroupLimits) -> CpuInfo:
    """The processor as this process may use it.

    Raises `HardwareError` if `FIDDLER_MAX_ISA` asks for an instruction set that the CPU lacks, or if the
    kernels are not built.
    """
    try:
        isa, isas = default_isa(), available_isas()
    except KernelsError as error:
        raise HardwareError(error.what, action=error.action) from error
    cpuinfo = _read("/proc/cpuinfo") if sys.platform == "linux" else ""
    topology = detect_topology()
    return CpuInfo(
        name=_name(cpuinfo),
        isa=str(isa),
        isas=tuple(str(level) for level in isas),
        features=parse_features(cpuinfo),
        logical_cores=topology.logical,
        physical_cores=topology.physical,
        performance_cores=topology.performance,
        usable_cores=topology.usable(allowed_cpus(), limits.cpus),
        quota=limits.cpus,
    )


def parse_name(cpuinfo: str) -> str | None:
    """The processor's name in the text of `/proc/cpuinfo`, with runs of spaces made one."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return None


def parse_features(cpuinfo: str) -> tuple[str, ...]:
    """The features of `_FEATURES` that `/proc/cpuinfo` lists; none where there is no such file."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "flags":
            present = set(value.split())
            return tuple(feature for feature in _FEATURES if feature in present)
    return ()


def _name(cpuinfo: str) -> str:
    return parse_name(cpuinfo) or _system_name() or platform.processor() or platform.machine() or "unknown"


def _system_name() -> str | None:
    """The name from the Windows registry or from macOS' sysctl."""
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(
                winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
            ) as key:
                return " ".join(str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).split()) or None
        except OSError:
            return None
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() or None
    return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
