"""RAM and disk, as far as this process may use them."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil

from engine.files import file_error
from engine.hardware.facts import DiskInfo, MemoryInfo
from kernels.cgroup import CgroupLimits

# A virtual machine whose memory is plugged in as it is used has a device bound to this driver.
_VIRTIO_MEM = Path("/sys/bus/virtio/drivers/virtio_mem")


def detect_memory(limits: CgroupLimits) -> MemoryInfo:
    """RAM now, within the container's limit."""
    memory = psutil.virtual_memory()
    return within_limits(memory.total, memory.available, limits, may_grow=has_plugged_memory(_VIRTIO_MEM))


def within_limits(total: int, available: int, limits: CgroupLimits, *, may_grow: bool = False) -> MemoryInfo:
    """What is left of the machine's `total` and `available` bytes under the container's limit.

    On a machine whose memory grows, the limit may exceed what is there now; it then says how far it can go.
    """
    if limits.memory is None:
        return MemoryInfo(total, available, None, may_grow)
    room = max(0, limits.memory - limits.memory_used)
    if may_grow and limits.memory > total:
        return MemoryInfo(limits.memory, room, limits.memory, may_grow)
    limit = limits.memory if limits.memory < total else None
    return MemoryInfo(min(total, limits.memory), min(available, room), limit, may_grow)


def has_plugged_memory(driver: Path) -> bool:
    """Whether the driver's folder holds a device (a link named `virtio…`)."""
    try:
        return any(entry.name.startswith("virtio") for entry in driver.iterdir())
    except OSError:
        return False


def detect_disk(folder: Path) -> DiskInfo:
    """The disk that holds `folder`, which need not exist yet: its nearest existing parent tells.

    Raises `FileError`.
    """
    existing = folder.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        usage = shutil.disk_usage(existing)
    except OSError as error:  # a drive that is not connected, or a folder that may not be entered
        raise file_error(f"The disk that holds {folder} cannot be examined.", folder, error) from error
    return DiskInfo(str(folder), usage.total, usage.free)
