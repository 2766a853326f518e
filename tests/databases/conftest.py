"""Requests for runs in a folder of the test's own, and a disk that is not waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from database_parts import Requests


@pytest.fixture
def make_request(tmp_path: Path) -> Requests:
    """Makes requests for runs whose workload begins with a load."""
    library = tmp_path / "librocksdb.so"
    library.write_bytes(b"an engine")
    return Requests(tmp_path / "runs", library)


@pytest.fixture(autouse=True)
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was synced, in that order; nothing really is, because no test can cut the power."""
    paths: list[Path] = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        paths.append(path.with_name(path.name.removesuffix(".new")))  # renamed into place at once

    monkeypatch.setattr(os, "fsync", fsync)
    return paths
