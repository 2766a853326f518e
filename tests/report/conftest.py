"""A study that a test fills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_study import SampleStudy


@pytest.fixture
def study(tmp_path: Path) -> Iterator[SampleStudy]:
    sample = SampleStudy(tmp_path)
    yield sample
    sample.close()
