"""What only some of these tests want: folders in memory, a disk that is not waited for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from database_parts import Requests

sys.path.insert(0, str(Path(__file__).parent.parent / "study"))

from memory_folder import tmp_path as in_memory

__all__ = ["in_memory"]


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """In memory for tests that use `in_memory`, and pytest's own for the others."""
    if "in_memory" not in request.fixturenames:
        return tmp_path
    folder: Path = request.getfixturevalue("in_memory")
    return folder


@pytest.fixture
def make_request(tmp_path: Path) -> Requests:
    """Makes requests for runs whose workload begins with a load."""
    library = tmp_path / "librocksdb.so"
    library.write_bytes(b"an engine")
    return Requests(tmp_path / "runs", library)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was synced, in that order; nothing really is, because no test can cut the power."""
    paths: list[Path] = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        paths.append(path.with_name(path.name.removesuffix(".new")))  # renamed into place at once

    monkeypatch.setattr(os, "fsync", fsync)
    return paths
