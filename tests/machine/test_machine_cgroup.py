"""Control groups with a memory limit: on made-up machines, and for real where one can be made."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_root import put

from lsmtune.errors import LsmtuneError
from lsmtune.machine.cgroup import (
    PREFIX,
    MemoryGroup,
    MemoryLimit,
    cpu_limit,
    memory_group,
    memory_group_obstacle,
    memory_limit,
)

MIB = 1 << 20
ALLOCATE = "import sys; sys.stdin.read(1); bytearray(int(sys.argv[1])); print('alive')"
NO_PROCESS = 2**22 + 1  # above the largest process id of Linux (proc(5), pid_max)

FILES = {
    1: {
        "cgroup.procs": "",
        "memory.limit_in_bytes": "9223372036854771712\n",
        "memory.memsw.limit_in_bytes": "9223372036854771712\n",
        "memory.oom_control": "oom_kill_disable 1\nunder_oom 0\noom_kill 3\n",
    },
    2: {
        "cgroup.procs": "",
        "memory.max": "max\n",
        "memory.swap.max": "max\n",
        "memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n",
    },
}


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def kernel(version: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Folders behave as control groups do: made with their files, removed when nobody is in them.

    What is returned are the files, which a test may change beforehand.
    """
    files, mkdir = dict(FILES[version]), Path.mkdir

    def make(path: Path, *args: object, **named: object) -> None:
        mkdir(path, *args, **named)  # type: ignore[arg-type]
        if path.name.startswith(PREFIX):
            for name, text in files.items():
                (path / name).write_text(text)

    def remove(path: Path) -> None:
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "gone", str(path))
        if (path / "cgroup.procs").read_text():
            raise OSError(errno.EBUSY, "busy", str(path))
        shutil.rmtree(path)

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Path, "rmdir", remove)
    return files


@pytest.fixture
def parent(version: int, tmp_path: Path) -> Path:
    """The group of a made-up machine in which groups are made."""
    put(tmp_path, f"proc/{os.getpid()}/stat", "alive")
    if version == 1:
        put(tmp_path, "proc/self/cgroup", "0::/\n4:memory:/job\n")
        return put(tmp_path, "sys/fs/cgroup/memory/job/cgroup.procs", "77\n").parent
    put(tmp_path, "proc/self/cgroup", "0::/user/app/tab\n")
    put(tmp_path, "sys/fs/cgroup/user/app/tab/cgroup.subtree_control", "\n")
    put(tmp_path, "sys/fs/cgroup/user/cgroup.subtree_control", "cpu memory\n")
    put(tmp_path, "sys/fs/cgroup/user/app/cgroup.procs", "")
    return put(tmp_path, "sys/fs/cgroup/user/app/cgroup.subtree_control", "cpu memory\n").parent


def made(limit_bytes: int, root: Path) -> MemoryGroup:
    group = memory_group(limit_bytes, root)
    assert group is not None, memory_group_obstacle(root)
    return group


@pytest.mark.usefixtures("kernel")
def test_a_group_is_limited_swap_included_and_removed(
    version: int, parent: Path, tmp_path: Path
) -> None:
    assert memory_group_obstacle(tmp_path) == ""
    with made(64 * MIB, tmp_path) as group, made(65 * MIB, tmp_path) as other:
        assert group.path.parent == parent
        assert other.path != group.path
        texts = {file.name: file.read_text() for file in group.path.iterdir()}
        if version == 1:
            assert texts["memory.limit_in_bytes"].startswith(str(64 * MIB))
            assert texts["memory.memsw.limit_in_bytes"].startswith(str(64 * MIB))
            assert texts["memory.oom_control"].startswith("0")
            assert group.oom_kills() == 3
        else:
            assert texts["memory.max"].startswith(str(64 * MIB))
            assert texts["memory.swap.max"].startswith("0")
            assert group.oom_kills() == 1
        group.add(4711)
        assert (group.path / "cgroup.procs").read_text() == "4711"
        (group.path / "cgroup.procs").write_text("")
    assert not list(parent.glob(f"{PREFIX}*"))
    with pytest.raises(LsmtuneError, match="cannot be read"):
        group.oom_kills()


@pytest.mark.usefixtures("kernel")
def test_a_lower_limit_of_this_process_is_carried_over(
    version: int, parent: Path, tmp_path: Path
) -> None:
    file = "memory.limit_in_bytes" if version == 1 else "tab/memory.max"
    (parent / file).write_text(str(10 * MIB))
    with made(64 * MIB, tmp_path) as group:
        assert group.limit_bytes == 10 * MIB
    with made(4 * MIB, tmp_path) as group:
        assert group.limit_bytes == 4 * MIB


@pytest.mark.usefixtures("kernel")
def test_the_group_of_a_tuner_in_a_container_is_not_swept(parent: Path, tmp_path: Path) -> None:
    """Its process has no number here: between two runs its group was taken for one left behind."""
    with made(64 * MIB, tmp_path) as group:
        shutil.rmtree(tmp_path / "proc" / str(os.getpid()))
        with made(64 * MIB, tmp_path) as other:
            assert other.path != group.path
            assert group.path.exists()
    assert not list(parent.glob(f"{PREFIX}*"))


@pytest.mark.usefixtures("kernel")
def test_groups_of_dead_tuners_are_swept_and_no_others(parent: Path, tmp_path: Path) -> None:
    dead, busy = parent / f"{PREFIX}{NO_PROCESS}-0", parent / f"{PREFIX}{NO_PROCESS}-1"
    alive, foreign = parent / f"{PREFIX}{os.getpid()}-9", parent / f"{PREFIX}mine"
    for folder in (dead, busy, alive, foreign):
        folder.mkdir()
    (busy / "cgroup.procs").write_text("12\n")
    with made(MIB, tmp_path):
        assert [f.exists() for f in (dead, busy, alive, foreign)] == [False, True, True, True]


def test_a_kernel_that_does_not_count_kills_is_an_obstacle(
    kernel: dict[str, str], parent: Path, tmp_path: Path
) -> None:
    kernel["memory.oom_control"] = kernel["memory.events"] = "under_oom 0\n"
    assert memory_group(MIB, tmp_path) is None
    assert "does not count" in memory_group_obstacle(tmp_path)
    assert not list(parent.glob(f"{PREFIX}*"))


def test_a_group_without_a_memory_limit_is_an_obstacle(
    kernel: dict[str, str], parent: Path, tmp_path: Path
) -> None:
    kernel.pop("memory.max", None)
    kernel.pop("memory.limit_in_bytes", None)
    assert "takes no memory limit" in memory_group_obstacle(tmp_path)
    assert not list(parent.glob(f"{PREFIX}*"))


def test_a_folder_that_cannot_be_made_is_an_obstacle(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_args: object, **_named: object) -> None:
        raise PermissionError(errno.EACCES, "no", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert memory_group(MIB, tmp_path) is None
    assert memory_group_obstacle(tmp_path).endswith(f"made in {parent}: permission denied")


def test_no_controller_and_no_groups_are_obstacles(tmp_path: Path) -> None:
    assert memory_group_obstacle(tmp_path) == "there are no control groups here"
    put(tmp_path, "proc/self/cgroup", "0::/\n")
    put(tmp_path, "sys/fs/cgroup/cgroup.subtree_control", "cpu io\n")
    assert "no group above this process gives memory limits" in memory_group_obstacle(tmp_path)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("version", [2], indirect=True)
@pytest.mark.parametrize(
    ("file", "limit", "none"),
    [
        ("cpu.max", "150000 100000\n", "max 100000\n"),
        ("cpuset.cpus", "0-1\n", "\n"),
        ("io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max\n", ""),
    ],
)
def test_a_run_does_not_leave_the_groups_that_bind_its_processors_and_its_disk(
    parent: Path, tmp_path: Path, file: str, limit: str, none: str
) -> None:
    """The driver was moved beside the group of a service, out of its CPUQuota= and AllowedCPUs=."""
    put(parent, f"tab/{file}", limit)
    assert memory_group(MIB, tmp_path) is None
    said = f"a run in a group in {parent} would escape {parent}/tab/{file}"
    assert memory_group_obstacle(tmp_path) == said
    put(parent, f"tab/{file}", none)
    put(parent, file, limit)  # this one binds what is beside the own group, too
    assert memory_group_obstacle(tmp_path) == ""


def test_a_limit_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="above 0, found 0"):
        memory_group(0, tmp_path)


@pytest.fixture
def real_group() -> Iterator[MemoryGroup]:
    group = memory_group(64 * MIB)
    if group is None:
        pytest.skip(f"no memory group here: {memory_group_obstacle()}")
    with group:
        yield group


def allocate(group: MemoryGroup, size_bytes: int) -> subprocess.CompletedProcess[bytes]:
    """A child that is put into `group` before it allocates."""
    command = [sys.executable, "-S", "-c", ALLOCATE, str(size_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        group.add(child.pid)
        said, _ = child.communicate(b"x")
    return subprocess.CompletedProcess(command, child.returncode, said)


def test_the_kernel_kills_what_allocates_above_the_limit(real_group: MemoryGroup) -> None:
    assert allocate(real_group, 16 * MIB).stdout == b"alive\n"
    assert real_group.oom_kills() == 0
    assert allocate(real_group, 200 * MIB).returncode == -signal.SIGKILL
    assert real_group.oom_kills() == 1


def test_what_is_left_in_a_group_dies_with_it(real_group: MemoryGroup) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        real_group.add(child.pid)
        real_group.remove()
        assert child.wait() == -signal.SIGKILL
    assert not real_group.path.exists()
    with pytest.raises(LsmtuneError):
        real_group.add(os.getpid())


def test_a_process_that_is_gone_cannot_be_added(real_group: MemoryGroup) -> None:
    with pytest.raises(ProcessLookupError):
        real_group.add(NO_PROCESS)


# --- limits of groups, on made-up machines


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
