"""`lsmtune doctor` on made-up machines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lsmtune.cli import doctor, machine
from lsmtune.cli.engines import Listing
from lsmtune.engines.library import Library
from lsmtune.records.engine import Build, EngineIdentity


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_tightest_limit_of_cgroup_2_counts(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/user/job\n")
    put(tmp_path, "sys/fs/cgroup/user/job/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/user/memory.max", "2147483648\n")
    put(tmp_path, "sys/fs/cgroup/user/job/cpu.max", "150000 100000\n")
    put(tmp_path, "sys/fs/cgroup/user/cpu.max", "max 100000\n")
    assert machine.memory_limit_bytes(tmp_path) == 2 << 30
    assert machine.cpu_limit(tmp_path) == 1.5


def test_the_limits_of_cgroup_1_count(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "3:memory:/job\n2:cpu,cpuacct:/job\n")
    put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    put(tmp_path, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    assert machine.memory_limit_bytes(tmp_path) == 1 << 30
    assert machine.cpu_limit(tmp_path) == 0.5


def test_inside_a_container_the_top_folder_counts(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/host/path/that/is/not/visible\n")
    put(tmp_path, "sys/fs/cgroup/memory.max", "536870912\n")
    assert machine.memory_limit_bytes(tmp_path) == 512 << 20


def test_an_empty_machine_tells_nothing(tmp_path: Path) -> None:
    assert machine.memory_limit_bytes(tmp_path) is None
    assert machine.cpu_limit(tmp_path) is None
    assert machine.governor(tmp_path) is None
    assert machine.clock_source(tmp_path) is None
    assert machine.load_average(tmp_path) is None
    assert machine.cpu_times(tmp_path) is None
    assert machine.mount_of(Path("/x"), tmp_path) is None


def test_steal_is_the_share_of_the_time_between_two_readings(tmp_path: Path) -> None:
    put(tmp_path, "proc/stat", "cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 2 3 4 5 6 7 8\n")
    before = machine.cpu_times(tmp_path)
    assert before == machine.CpuTimes(steal=40, total=1000)
    assert machine.steal_share(before, machine.CpuTimes(65, 1100)) == 0.25
    assert math.isnan(machine.steal_share(before, before))


def test_the_deepest_mount_point_holds_a_path(tmp_path: Path) -> None:
    lines = (
        "1 0 8:1 / / rw - ext4 /dev/root rw",
        "2 1 8:2 / /data rw shared:1 - xfs /dev/sdb rw",
        "3 1 0:5 / /data/my\\040disk rw - tmpfs none rw",
    )
    put(tmp_path, "proc/self/mountinfo", "\n".join(lines))
    for path, filesystem in (("/home", "ext4"), ("/data/x", "xfs"), ("/data/my disk/x", "tmpfs")):
        found = machine.mount_of(Path(path), tmp_path)
        assert found is not None
        assert found.filesystem == filesystem
    found = machine.mount_of(Path("/database"), tmp_path)
    assert found is not None
    assert found.mount_point == "/"


def known(build: Build, compressions: tuple[str, ...] = ("none", "snappy")) -> Library:
    path = Path("/opt/librocksdb.so")
    return Library(path, EngineIdentity("rocksdb", "9.0", str(path), build), compressions, "test")


@pytest.mark.parametrize(
    ("library", "levels"),
    [
        (known(Build.RELEASE), ["ok", "warning"]),
        (known(Build.ASSERTIONS_ON), ["warning", "warning"]),
        (known(Build.UNKNOWN), ["warning", "warning"]),
        (known(Build.RELEASE, ("none",)), ["ok", "note", "warning"]),
    ],
)
def test_each_engine_has_a_finding(library: Library, levels: list[str]) -> None:
    findings = list(doctor.engine_findings(Listing((library,), ())))
    assert [f.level.value for f in findings] == levels
    assert all(f.next_step for f in findings if f.level is not doctor.Level.OK)


def test_a_warning_of_the_registry_becomes_a_finding() -> None:
    listing = Listing((), ("registered library x is gone; next step: lsmtune engines remove x",))
    finding = list(doctor.engine_findings(listing))[-1]
    assert finding.text == "registered library x is gone"
    assert finding.next_step == "lsmtune engines remove x"


def test_a_missing_driver_and_folder_are_problems_and_fail(
    lsmtune: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LSMTUNE_DRIVER", str(tmp_path / "absent"))
    said = lsmtune("doctor", "--dir", str(tmp_path / "absent"), "--json")
    assert said.status == 1
    problems = {f["subject"] for f in said.json()["findings"] if f["level"] == "problem"}
    assert problems == {"driver", "disk"}


@pytest.mark.engine
def test_every_subject_is_looked_at_on_this_machine(
    lsmtune: Any, driver: Path, tmp_path: Path
) -> None:
    assert driver.is_file()
    said = lsmtune("doctor", "--dir", str(tmp_path))
    assert said.status == 0, said.out
    lines = said.out.splitlines()
    subjects = {line.split(None, 1)[1].split(":")[0] for line in lines}
    wanted = {"driver", "rocksdb", "leveldb", "disk", "memory", "cpu", "governor", "load", "clock"}
    assert wanted <= subjects
    assert all("next step: " in line for line in lines if line.startswith("warning"))
