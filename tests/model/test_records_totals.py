from __future__ import annotations

from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, total_metric
from lsmtune.model.metrics import TOTAL_METRICS
from made_up import made_up_phase


def phase(kind: str, elapsed_s: float, drain_s: float) -> PhaseMeasurement:
    return made_up_phase(kind, kind=kind, elapsed_s=elapsed_s, drain_s=drain_s)


def measured(*phases: PhaseMeasurement) -> Measurement:
    return Measurement(Outcome.OK, EngineIdentity("memory"), {}, "x", 1, 0.0, 1.0, phases)


def test_only_measure_phases_count() -> None:
    run = measured(phase("load", 9.0, 9.0), phase("measure", 1.0, 0.5), phase("measure", 2.0, 0.0))
    assert [total_metric(run, name) for name in TOTAL_METRICS] == [3.0, 3.5]
    assert total_metric(run, "elapsed_s") is None
    assert total_metric(measured(phase("load", 1.0, 1.0)), TOTAL_METRICS[0]) is None
