"""Limits of control groups, on made-up machines."""

from __future__ import annotations

from pathlib import Path

from fake_root import put

from lsmtune.machine.cgroup import MemoryLimit, cpu_limit, memory_limit


def test_the_least_limit_of_version_2_counts(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/user/job\n")
    put(tmp_path, "sys/fs/cgroup/user/job/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/user/memory.max", "2147483648\n")
    put(tmp_path, "sys/fs/cgroup/user/memory.current", "1073741824\n")
    put(tmp_path, "sys/fs/cgroup/user/job/cpu.max", "150000 100000\n")
    put(tmp_path, "sys/fs/cgroup/user/cpu.max", "max 100000\n")
    assert memory_limit(tmp_path) == MemoryLimit(2 << 30, 1 << 30)
    assert cpu_limit(tmp_path) == 1.5


def test_the_limits_of_version_1_count(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "3:memory:/job\n2:cpu,cpuacct:/job\n")
    put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    put(tmp_path, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    assert memory_limit(tmp_path) == MemoryLimit(1 << 30, None)
    assert cpu_limit(tmp_path) == 0.5


def test_both_versions_may_be_there_and_the_lesser_limit_counts(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "4:memory:/job\n0::/job\n")
    put(tmp_path, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3000\n")
    put(tmp_path, "sys/fs/cgroup/job/memory.max", "5000\n")
    assert memory_limit(tmp_path) == MemoryLimit(3000, None)


def test_inside_a_container_the_top_folder_counts(tmp_path: Path) -> None:
    put(tmp_path, "sys/fs/cgroup/memory.max", "536870912\n")
    for path in ("/host/path/that/is/not/visible", "/../../elsewhere"):
        put(tmp_path, "proc/self/cgroup", f"0::{path}\n")
        assert memory_limit(tmp_path) == MemoryLimit(512 << 20, None)


def test_an_empty_machine_has_no_limits(tmp_path: Path) -> None:
    assert memory_limit(tmp_path) is None
    assert cpu_limit(tmp_path) is None
