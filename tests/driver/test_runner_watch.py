"""What the watch counts: disk and memory, tolerant of what vanishes."""

from __future__ import annotations

import mmap
import os
import subprocess
import threading
from pathlib import Path

from lsmtune.driver.process import resident_bytes
from lsmtune.driver.watch import disk_bytes


def test_disk_bytes_counts_blocks_in_every_subfolder_and_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big").write_bytes(os.urandom(1 << 20))
    run = tmp_path / "run"
    (run / "db").mkdir(parents=True)
    (run / "link").symlink_to(outside)
    (run / "db" / "sparse").touch()
    os.truncate(run / "db" / "sparse", 1 << 30)
    assert disk_bytes(run) < 1 << 16
    (run / "db" / "table").write_bytes(os.urandom(1 << 20))
    assert 1 << 20 <= disk_bytes(run) < (1 << 20) + (1 << 16)
    assert disk_bytes(tmp_path / "nothing") == 0


def test_disk_bytes_while_files_come_and_go(tmp_path: Path) -> None:
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            folder = tmp_path / "level"
            folder.mkdir()
            names = [folder / f"{number}.sst" for number in range(20)]
            for name in names:
                name.write_bytes(b"x" * 100)
            for name in names:
                name.unlink()
            folder.rmdir()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(300):
            assert disk_bytes(tmp_path) >= 0
    finally:
        stop.set()
        thread.join()


def test_pages_of_files_are_no_memory_of_the_process_that_maps_them(tmp_path: Path) -> None:
    """The text of a library, and files that an engine maps, can be dropped at any time."""
    path = tmp_path / "large"
    path.write_bytes(bytes(64 << 20))
    before = resident_bytes(os.getpid())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[::4096]) == 0  # every page is resident now
        assert resident_bytes(os.getpid()) - before < 16 << 20
    with mmap.mmap(-1, 64 << 20) as shared:
        shared[::4096] = bytes(len(shared) // 4096)
        assert resident_bytes(os.getpid()) - before > 48 << 20, "shared memory is its own"


def test_resident_bytes_of_a_process_and_of_none() -> None:
    assert resident_bytes(os.getpid()) > 1 << 20
    assert resident_bytes(2**22 + 1) == 0


def test_a_process_whose_name_the_kernel_cut_inside_a_letter_is_measured(tmp_path: Path) -> None:
    """A name has at most 15 bytes: the eighth letter of two bytes loses its second."""
    program = tmp_path / "éééééééé"
    program.symlink_to("/bin/cat")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"there\n")
            process.stdin.flush()
            process.stdout.readline()  # it is the program now
            status = Path(f"/proc/{process.pid}/status")
            assert "é".encode() * 7 + b"\xc3\n" in status.read_bytes()
            assert resident_bytes(process.pid) > 0
        finally:
            process.kill()
