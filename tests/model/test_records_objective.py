from __future__ import annotations

from dataclasses import replace

import pytest

from lsmtune.model.config import EngineIdentity
from lsmtune.model.goal import Direction, Objective, default_direction
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, total_metric
from lsmtune.model.metrics import METRICS, TOTAL_METRICS
from made_up import made_up_phase


def phase(name: str, kind: str, ops_s: float) -> PhaseMeasurement:
    return made_up_phase(
        name,
        kind=kind,
        drain_s=1.0,
        throughput_ops_s=2 * ops_s,
        sustained_throughput_ops_s=ops_s,
    )


def measured(*phases: PhaseMeasurement) -> Measurement:
    return Measurement(Outcome.OK, EngineIdentity("memory"), {}, "x", 1, 0.0, 1.0, phases)


LOADED = measured(
    phase("load", "load", 1.0),
    phase("first", "measure", 2.0),
    phase("second", "measure", 3.0),
    phase("warmup", "warmup", 4.0),
)


@pytest.mark.parametrize(("name", "value"), [(None, 3.0), ("first", 2.0), ("load", None)])
def test_the_named_measure_phase_counts_or_else_the_last(
    name: str | None, value: float | None
) -> None:
    assert Objective(phase=name).value(LOADED) == value


def test_the_default_charges_the_drain() -> None:
    assert Objective().metric == "sustained_throughput_ops_s"
    assert Objective("throughput_ops_s").value(LOADED) == 6.0


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_a_run_that_failed_has_no_value_whatever_it_observed(outcome: Outcome) -> None:
    assert Objective().value(replace(LOADED, outcome=outcome)) is None


def test_what_was_not_observed_is_not_zero() -> None:
    assert Objective("write_amplification", Direction.MINIMIZE).value(LOADED) is None
    assert Objective().value(measured()) is None


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_a_number_with_a_direction(metric: str) -> None:
    assert isinstance(Objective(metric).value(LOADED), float | None)
    higher = default_direction(metric) is Direction.MAXIMIZE
    # A candidate that had more of its blocks from the cache was proved worse.
    more = {"block_cache_hits", "user_bytes_read", "user_bytes_written"}
    assert higher == (metric.endswith("throughput_ops_s") or metric in more)


def test_better_follows_the_direction_and_equal_is_not_better() -> None:
    assert Direction.MAXIMIZE.better(2.0, 1.0)
    assert not Direction.MAXIMIZE.better(1.0, 1.0)
    assert Direction.MINIMIZE.better(1.0, 2.0)
    assert not Direction.MINIMIZE.better(1.0, 1.0)


# --- totals of all measure phases


def timed(kind: str, elapsed_s: float, drain_s: float) -> PhaseMeasurement:
    return made_up_phase(kind, kind=kind, elapsed_s=elapsed_s, drain_s=drain_s)


def test_only_measure_phases_count() -> None:
    run = measured(timed("load", 9.0, 9.0), timed("measure", 1.0, 0.5), timed("measure", 2.0, 0.0))
    assert [total_metric(run, name) for name in TOTAL_METRICS] == [3.0, 3.5]
    assert total_metric(run, "elapsed_s") is None
    assert total_metric(measured(timed("load", 1.0, 1.0)), TOTAL_METRICS[0]) is None
