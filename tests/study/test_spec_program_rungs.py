"""Pruning a program of the user's own: it reports the objective itself, whatever that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.study.build import parse_spec
from lsmtune.study.spec import TimeRungs

STUDY = """\
version: 1
name: program
runner: {{command: [run.sh]}}
objective: {{metric: {metric}, direction: minimize}}
baseline: {{size: 1}}
space:
  size: {{type: int, low: 1, high: 9}}
pruner: {{name: median}}
budget: {{trials: 10}}
"""


@pytest.mark.parametrize("metric", ["loss", "latency_us_p99", "elapsed_s"])
def test_a_program_may_report_any_metric_on_its_way(metric: str) -> None:
    """A driver tells its rate alone while it runs; a program was refused what only that cannot."""
    spec = parse_spec(STUDY.format(metric=metric), Path("study.yaml"))
    assert spec.pruner is not None
    assert isinstance(spec.pruner.rungs, TimeRungs)
