"""Folders for tests that tune: in memory where there is such a file system.

Each trial waits for the disk a dozen times, and none of these tests cuts the power.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In place of pytest's own."""
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lsmtune-test-", dir=where) as name:
        yield Path(name)
