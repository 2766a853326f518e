"""A request and a workload file state the parts of a workload alike; defaults are left out."""

from __future__ import annotations

import pytest

from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import (
    Companion,
    Mix,
    Phase,
    PhaseKind,
    Replay,
    SineRate,
    StepRate,
    Workload,
    stated_parts,
)

MEASURE = PhaseKind.MEASURE
SCANS = Mix((("scan", 1.0),), records=9, scan_lengths=Distribution.of("constant", size=3))
SCANS_STATED = {
    "operations": {"scan": 1.0},
    "keys": {"distribution": "uniform"},
    "records": 9,
    "scan_lengths": {"distribution": "constant", "size": 3},
}


@pytest.mark.parametrize(
    ("phase", "stated"),
    [
        (Phase("p", MEASURE, "readseq", duration_s=2.0), {"operation": "readseq", "duration_s": 2}),
        (Phase("p", MEASURE, mix=SCANS, operations=5), {"mix": SCANS_STATED, "operations": 5}),
        (
            Phase("p", MEASURE, replay=Replay("t", 2.0), threads=3),
            {"replay": {"path": "t", "speed": 2.0}, "threads": 3},
        ),
        (
            Phase("p", MEASURE, "overwrite", duration_s=1.0, rate=SineRate(9.0, 4.0, 2.0)),
            {
                "operation": "overwrite",
                "duration_s": 1.0,
                "rate": {
                    "shape": "sine",
                    "mean_ops_s": 9.0,
                    "amplitude_ops_s": 4.0,
                    "period_s": 2.0,
                },
            },
        ),
        (
            Phase("p", MEASURE, "overwrite", duration_s=1.0, rate=StepRate(((1.0, 5.0),))),
            {
                "operation": "overwrite",
                "duration_s": 1.0,
                "rate": {"shape": "steps", "steps": [[1.0, 5.0]]},
            },
        ),
        (
            Phase(
                "p",
                MEASURE,
                "readseq",
                duration_s=1.0,
                companions=(Companion("b", mix=SCANS, rate_ops_s=5.0), Companion("w", "overwrite")),
            ),
            {
                "operation": "readseq",
                "duration_s": 1.0,
                "companions": [
                    {"name": "b", "mix": SCANS_STATED, "rate_ops_s": 5.0},
                    {"name": "w", "operation": "overwrite"},
                ],
            },
        ),
    ],
)
def test_what_a_phase_does(phase: Phase, stated: dict[str, object]) -> None:
    workload = Workload("w", (phase,), num=9)
    (document,) = stated_parts(workload, short=False)["phases"]
    assert document == {"name": "p", "kind": "measure", **stated}
