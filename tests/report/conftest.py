"""A study that a test fills, and importance with few resamples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_study import SampleStudy

from lsmtune.report.importance import RESAMPLES, Method


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number makes figures finer; what matters and what does not is seen with few."""
    for method in Method:
        monkeypatch.setitem(RESAMPLES, method, 10)


@pytest.fixture
def study(tmp_path: Path) -> Iterator[SampleStudy]:
    sample = SampleStudy(tmp_path)
    yield sample
    sample.close()
