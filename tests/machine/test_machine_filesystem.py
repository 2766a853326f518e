"""Filesystems and their devices, on made-up machines and on this one."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest
from fake_root import put

from lsmtune.machine.filesystem import cached_share, mount_of, page_cache_obstacles
from lsmtune.machine.findings import mount_findings

LINES = (
    "1 0 8:1 / / rw,relatime - ext4 /dev/root rw,data=journal",
    "2 1 8:17 / /data rw,sync shared:1 - xfs /dev/sdb1 rw,nobarrier",
    "3 1 0:5 / /data/my\\040disk rw - tmpfs none rw",
    "5 1 0:6 / /data/a\\134b\\011c rw - tmpfs none rw",
    "4 1 0:9 / /share rw - nfs4 server:/x rw",
    "not a line of this file",
)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    put(tmp_path, "proc/self/mountinfo", "\n".join(LINES))
    return tmp_path


def test_the_deepest_mount_point_holds_a_path(machine: Path) -> None:
    for path, filesystem, point in (
        ("/home", "ext4", "/"),
        ("/database", "ext4", "/"),
        ("/data/x", "xfs", "/data"),
        ("/data/my disk/x", "tmpfs", "/data/my disk"),
        ("/data/a\\b\tc/x", "tmpfs", "/data/a\\b\tc"),
    ):
        found = mount_of(Path(path), machine)
        assert found is not None
        assert (found.filesystem, found.mount_point) == (filesystem, point)


def test_what_bears_on_measurements_is_told(machine: Path) -> None:
    paths = ("/", "/data", "/data/my disk", "/share")
    found = [mount for path in paths if (mount := mount_of(Path(path), machine)) is not None]
    told = [[each.text for each in mount_findings(mount, Path("/d"))] for mount in found]
    assert told == [
        [
            "/d: ext4 on /dev/root",
            "mounted with data=journal: every write costs more than usual",
        ],
        [
            "/d: xfs on /dev/sdb1",
            "mounted with sync: every write costs more than usual",
            "mounted with nobarrier: a sync costs less than it should",
        ],
        ["/d: tmpfs on none is memory: flushes and syncs cost nothing there"],
        ["/d: nfs4 on server:/x is on another machine"],
    ]


def test_a_partition_turns_when_its_disk_does(machine: Path) -> None:
    put(machine, "sys/devices/sda/queue/rotational", "0\n")
    put(machine, "sys/devices/sdb/queue/rotational", "1\n")
    put(machine, "sys/devices/sdb/sdb1/size", "1\n")
    blocks = machine / "sys/dev/block"
    blocks.mkdir(parents=True)
    (blocks / "8:1").symlink_to(machine / "sys/devices/sda")
    (blocks / "8:17").symlink_to(machine / "sys/devices/sdb/sdb1")
    found = [mount_of(Path(path), machine) for path in ("/", "/data", "/share")]
    assert [mount.rotational for mount in found if mount] == [False, True, None]


def test_an_empty_machine_has_no_mounts(tmp_path: Path) -> None:
    assert mount_of(Path("/x"), tmp_path) is None


def test_pages_of_a_file_are_counted_in_the_page_cache(tmp_path: Path) -> None:
    mount = mount_of(tmp_path.resolve())
    if mount is None or mount.filesystem in ("tmpfs", "overlay"):
        pytest.skip(f"files of {tmp_path} may never leave memory")
    path, pages = tmp_path / "file", 8
    path.write_bytes(os.urandom(pages * mmap.PAGESIZE))
    with path.open("r+b") as file:
        length = pages * mmap.PAGESIZE - 1  # the last page counts whole
        assert cached_share(file.fileno(), length) == 1.0
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert cached_share(file.fileno(), length) == 0.0
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(file.fileno(), 1, 3 * mmap.PAGESIZE)
        assert cached_share(file.fileno(), length) == 1 / pages
    assert page_cache_obstacles(tmp_path)["cold"] == ""
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_files_in_memory_cannot_be_made_cold() -> None:
    shared = Path("/dev/shm")
    mount = mount_of(shared)
    if mount is None or mount.filesystem != "tmpfs" or not os.access(shared, os.W_OK):
        pytest.skip("no filesystem in memory at /dev/shm")
    assert "stayed in the page cache" in page_cache_obstacles(shared)["cold"]
