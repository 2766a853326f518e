"""The simulations are a benchmark, and no part of the package."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "verdicts"))


@pytest.fixture(autouse=True, scope="module")
def _no_tracker_is_left() -> Iterator[None]:
    """Tests of other rooms look at what their process has started."""
    yield
    gc.collect()  # semaphores of pools, which would start it again
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]
