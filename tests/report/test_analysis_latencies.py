"""Which phases the latency curves of a study are of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_study import STUDY, SampleStudy

from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Measurement
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.source import read_study


def with_gets(run: Measurement) -> Measurement:
    """`run` with a second measure phase, and a load that nobody judges."""
    put = run.phases[0]
    latency = put.latencies["put"]
    load = replace(put, name="load", kind="load", latencies={"scan": latency})
    get = replace(put, name="get", latencies={"get": latency})
    return replace(run, phases=(load, put, get))


@pytest.mark.parametrize(
    ("metric", "operations"),
    [("total_with_drain_s", {"put", "get"}), ("latency_us_p99", {"get"})],
)
def test_a_total_has_the_curves_of_all_its_phases(
    tmp_path: Path, metric: str, operations: set[str]
) -> None:
    study = SampleStudy(tmp_path, f"{STUDY}objective: {{metric: {metric}}}\n")
    for _ in range(3):
        study.add(Role.BASELINE, with_gets(study.measured({})), study.baseline)
    with study.opened() as folder:
        curves = StudyAnalysis(read_study(folder)).latencies
    study.close()
    assert {curve.operation for curve in curves} == operations
    assert {curve.runs for curve in curves} == {3}
