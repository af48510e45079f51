from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import cgroup
from kernels.cgroup import CgroupLimits, read_limits

V2_MOUNT = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTS = (
    "33 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "34 32 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
)


def make(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_membership_of_both_versions() -> None:
    text = "5:cpu,cpuacct:/user\n4:memory:/a:b\n0::/user.slice/session\nnonsense\n"
    assert cgroup.parse_membership(text) == {
        "cpu": "/user",
        "cpuacct": "/user",
        "memory": "/a:b",
        "": "/user.slice/session",
    }


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("max 100000\n", None),
        ("150000 100000\n", 1.5),
        ("50000 100000", 0.5),
        ("", None),
        ("x y", None),
        ("0 0", None),
    ],
)
def test_cpu_max(text: str, cpus: float | None) -> None:
    assert cgroup.parse_cpu_max(text) == cpus


@pytest.mark.parametrize(
    ("quota", "cpus"), [("-1\n", None), ("400000\n", 4.0), ("", None), ("garbage", None)]
)
def test_cfs_quota(quota: str, cpus: float | None) -> None:
    assert cgroup.parse_cfs(quota, "100000\n") == cpus


@pytest.mark.parametrize(
    ("text", "limit"),
    [("max\n", None), ("9223372036854771712\n", None), ("2147483648\n", 2**31), ("", None), ("-5", None)],
)
def test_memory_limits(text: str, limit: int | None) -> None:
    assert cgroup.parse_bytes(text) == limit


@given(st.text(max_size=200))
def test_parsers_accept_any_text(text: str) -> None:
    cgroup.parse_membership(text)
    cgroup.parse_mounts(text)
    cgroup.parse_cpu_max(text)
    cgroup.parse_bytes(text)
    cgroup.parse_stat(text)


def test_v2_takes_the_tightest_limit_on_the_way_up(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/app\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/user.slice/cpu.max": "300000 100000\n",
            "sys/fs/cgroup/user.slice/memory.max": "4000\n",
            "sys/fs/cgroup/user.slice/memory.current": "1500\n",
            "sys/fs/cgroup/user.slice/memory.stat": "anon 900\ninactive_file 500\n",
            "sys/fs/cgroup/user.slice/app/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user.slice/app/memory.max": "8000\n",
            "sys/fs/cgroup/user.slice/app/memory.current": "700\n",
        },
    )
    assert read_limits(root) == CgroupLimits(cpus=3.0, memory=4000, memory_used=1000)


def test_v1_quota_and_memory_of_a_container(tmp_path: Path) -> None:
    """Without a cgroup namespace the process's path is the host's, and only the mount's root is visible."""
    root = make(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n",
            "proc/self/mountinfo": V1_MOUNTS.replace("0:30 /", "0:30 /docker/abc"),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "600000\n",
            "sys/fs/cgroup/memory/memory.stat": "cache 300000\ntotal_inactive_file 200000\n",
        },
    )
    assert read_limits(root) == CgroupLimits(cpus=2.5, memory=1_000_000, memory_used=400_000)


def test_v1_without_limits(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/\n",
            "proc/self/mountinfo": V1_MOUNTS,
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert read_limits(root) == CgroupLimits()


def test_a_path_cannot_leave_the_hierarchy(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../../outside\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/cpu.max": "max 100000",
            "sys/outside/cpu.max": "1 100000",
        },
    )
    assert read_limits(root) == CgroupLimits()


def test_a_system_without_cgroups(tmp_path: Path) -> None:
    assert read_limits(tmp_path) == CgroupLimits()
