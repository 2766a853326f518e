"""What the watch counts: disk and memory, tolerant of what vanishes."""

from __future__ import annotations

import os
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


def test_resident_bytes_of_a_process_and_of_none() -> None:
    assert resident_bytes(os.getpid()) > 1 << 20
    assert resident_bytes(2**22 + 1) == 0
