from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.topology import Topology, default_threads, linux_topology, parse_cpu_list, psutil_topology


def machine(root: Path, siblings: dict[int, str], **extra: str) -> Path:
    """A `/sys` with the given sibling lists; `extra` maps a path (with `__` for `/`) to its text."""
    files = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list": text for cpu, text in siblings.items()
    }
    files["sys/devices/system/cpu/online"] = f"0-{max(siblings)}\n"
    files |= {name.replace("__", "/"): text for name, text in extra.items()}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("\n", set()), ("0,2-3", {0, 2, 3})]
)
def test_cpu_lists(text: str, cpus: set[int]) -> None:
    assert parse_cpu_list(text) == cpus


@given(st.sets(st.integers(0, 300), max_size=40))
def test_any_set_written_as_single_numbers_is_read_back(cpus: set[int]) -> None:
    assert parse_cpu_list(",".join(map(str, cpus))) == cpus


def test_hyperthreads_share_a_core(tmp_path: Path) -> None:
    root = machine(tmp_path, {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5", 6: "2,6", 7: "3,7"})
    found = linux_topology(root)
    assert found is not None
    assert (found.logical, found.physical, found.performance) == (8, 4, 4)
    assert found.usable(None, None) == 4
    assert found.usable(frozenset({0, 4, 1}), None) == 2  # two threads of one core are one core
    assert found.usable(None, 2.9) == 2
    assert found.usable(None, 0.5) == 1
    assert found.order(None, None) == (0, 1, 2, 3)
    assert found.order(frozenset({2, 4, 5, 7}), None) == (2, 4, 5, 7)  # the other thread of a core will do
    assert found.order(frozenset({0, 4, 1}), None) == (0, 1)
    assert found.order(None, 2.9) == (0, 1)
    assert found.order(None, 0.5) == (0,)


def hybrid(tmp_path: Path, **extra: str) -> Topology:
    """Two performance cores with two threads each, four efficiency cores."""
    siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3", 4: "4", 5: "5", 6: "6", 7: "7"}
    found = linux_topology(machine(tmp_path, siblings, **extra))
    assert found is not None
    return found


def test_hybrid_cores_as_the_kernel_names_them(tmp_path: Path) -> None:
    found = hybrid(tmp_path, sys__devices__cpu_core__cpus="0-3\n", sys__devices__cpu_atom__cpus="4-7\n")
    assert (found.logical, found.physical, found.performance) == (8, 6, 2)
    assert found.usable(None, None) == 2
    assert found.usable(frozenset({4, 5, 6}), None) == 3  # pinned to efficiency cores: use them
    assert found.order(None, None) == (0, 2, 4, 5, 6, 7)
    assert found.order(None, 3.0) == (0, 2, 4)
    assert found.order(frozenset({4, 5, 6}), None) == (4, 5, 6)


def test_hybrid_cores_by_frequency(tmp_path: Path) -> None:
    speeds = {0: 5200, 1: 5200, 2: 5000, 3: 5000, 4: 3800, 5: 3800, 6: 3800, 7: 3800}
    found = hybrid(
        tmp_path,
        **{
            f"sys__devices__system__cpu__cpu{cpu}__cpufreq__cpuinfo_max_freq": str(mhz * 1000)
            for cpu, mhz in speeds.items()
        },
    )
    assert found.performance == 2


def test_efficiency_cores_come_last_whatever_their_numbers() -> None:
    found = Topology(tuple(frozenset({cpu}) for cpu in range(6)), efficiency=frozenset({0, 1, 2}))
    assert found.order(None, None) == (3, 4, 5, 0, 1, 2)
    assert found.order(frozenset({1, 4}), None) == (4, 1)


def test_favoured_cores_are_not_another_kind(tmp_path: Path) -> None:
    speeds = {0: 5700, 1: 5700, 2: 5200, 3: 5200, 4: 5200, 5: 5200, 6: 5200, 7: 5200}
    found = hybrid(
        tmp_path,
        **{
            f"sys__devices__system__cpu__cpu{cpu}__cpufreq__cpuinfo_max_freq": str(mhz * 1000)
            for cpu, mhz in speeds.items()
        },
    )
    assert found.performance == found.physical == 6


def test_offline_cpus_do_not_count(tmp_path: Path) -> None:
    root = machine(tmp_path, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    (root / "sys/devices/system/cpu/online").write_text("0-1\n")
    found = linux_topology(root)
    assert found is not None
    assert (found.logical, found.physical) == (2, 2)


def test_no_sys_means_no_answer(tmp_path: Path) -> None:
    assert linux_topology(tmp_path) is None


@pytest.mark.parametrize(
    ("logical", "physical", "expected"),
    [(8, 4, (8, 4)), (6, None, (6, 6)), (None, None, (1, 1)), (2, 4, (2, 2)), (None, 3, (3, 3))],
)
def test_counts_alone(logical: int | None, physical: int | None, expected: tuple[int, int]) -> None:
    found = psutil_topology(logical, physical)
    assert (found.logical, found.physical) == expected


@given(
    physical=st.integers(1, 64),
    threads=st.integers(1, 2),
    quota=st.none() | st.floats(0.01, 200),
    data=st.data(),
)
def test_usable_cores_stay_within_every_limit(
    physical: int, threads: int, quota: float | None, data: st.DataObject
) -> None:
    found = psutil_topology(physical * threads, physical)
    allowed = frozenset(data.draw(st.sets(st.integers(0, physical * threads - 1), min_size=1)))
    usable = found.usable(allowed, quota)
    assert 1 <= usable <= min(physical, len(allowed))
    if quota is not None:
        assert usable <= max(1, quota)
    order = found.order(allowed, quota)
    assert len(order) == usable  # one kind of cores here
    assert set(order) <= allowed
    assert len({cpu % physical for cpu in order}) == len(order)  # each of another core


@pytest.mark.parametrize(("usable", "threads"), [(1, 1), (2, 2), (5, 5), (6, 5), (16, 15)])
def test_many_cores_leave_one_by_default(usable: int, threads: int) -> None:
    assert default_threads(usable) == threads
