"""The metrics beside the one that decides, and the correction for looking at several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from fake_runner import ENGINE, phase

from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.metrics import BY_NAME
from lsmtune.proof.verdict import SecondaryRatios, secondary_ratios
from lsmtune.stats.sequential import pairs_at_least, sequential_ratio

GOAL = Goal((Objective(),))
PAIRS = 12
Runs = Sequence[Sequence[Measurement]]


def run_of(*phases: PhaseMeasurement, **reported: float) -> Measurement:
    return Measurement(Outcome.OK, ENGINE, {}, "w", 1, 0.0, 1.0, phases=phases, reported=reported)


def sides(factor: float, **fields: float | None) -> list[list[Measurement]]:
    """One run per pair, `factor` times as fast as others of the same pair."""
    values = np.random.default_rng(3).lognormal(11.0, 0.02, PAIRS)
    noise = np.random.default_rng(int(1000 * factor)).lognormal(0.0, 0.01, PAIRS)
    return [
        [run_of(replace(phase(factor * value * error), **fields))]  # type: ignore[arg-type]
        for value, error in zip(values, noise, strict=True)
    ]


def ratios_of(goal: Goal, baselines: Runs, candidates: Runs, confidence: float) -> SecondaryRatios:
    return secondary_ratios(goal, list(zip(baselines, candidates, strict=True)), confidence)


def labels(found: SecondaryRatios) -> list[str]:
    return [ratio.metric for ratio in found.ratios]


def test_every_metric_with_a_ratio_but_the_one_that_decides() -> None:
    found = ratios_of(GOAL, sides(1.0, drain_s=2.0), sides(1.5, drain_s=1.0), 0.95)
    assert labels(found) == ["throughput_ops_s", "drain_s", "rss_bytes_max", "database_bytes"]
    by_metric = {ratio.metric: ratio for ratio in found.ratios}
    assert by_metric["throughput_ops_s"].direction == "maximize"
    assert by_metric["drain_s"].direction == "minimize"
    assert by_metric["drain_s"].ratio == pytest.approx(0.5)


def test_a_value_of_zero_on_either_side_leaves_no_ratio() -> None:
    for drains_s in ((2.0, 0.0), (0.0, 2.0)):
        baseline, candidate = (sides(1.0, drain_s=drain_s) for drain_s in drains_s)
        assert "drain_s" not in labels(ratios_of(GOAL, baseline, candidate, 0.95))


def test_each_interval_has_its_share_of_the_error() -> None:
    baseline, candidate = sides(1.0), sides(1.5)
    found = ratios_of(GOAL, baseline, candidate, 0.95)
    # Drain is 0 on both sides: it was looked at, and has no ratio.
    assert found.each == pytest.approx(1 - 0.05 / 4)
    (burst, *_) = found.ratios
    assert pairs_at_least(found.each) <= PAIRS
    values = [[run.phases[0].throughput_ops_s for (run,) in side] for side in (baseline, candidate)]
    expected = sequential_ratio(*values, found.each)
    assert (burst.ratio_low, burst.ratio_high) == (expected.low, expected.high)
    alone = sequential_ratio(*values, 0.95)
    assert burst.ratio_low < alone.low < alone.high < burst.ratio_high  # type: ignore[operator]


def test_what_one_side_did_not_observe_has_no_ratio() -> None:
    found = ratios_of(GOAL, sides(1.0, latency_us_p99=None), sides(1.0, latency_us_p99=2.0), 0.9)
    assert "latency_us_p99" not in labels(found)


@pytest.mark.parametrize("pairs", [0, 1, 5])
def test_few_pairs_have_ratios_and_no_intervals(pairs: int) -> None:
    found = ratios_of(GOAL, sides(1.0)[:pairs], sides(1.5)[:pairs], 0.95)
    assert bool(found.ratios) == (pairs > 1)
    assert all(r.ratio_low is None and r.ratio_high is None for r in found.ratios)
    assert (found.each is None) == (pairs == 0)


def test_objectives_of_several_come_first_also_without_a_ratio() -> None:
    goal = Goal((Objective("drain_s", Direction.MINIMIZE), Objective()))
    found = ratios_of(goal, sides(1.0), sides(1.5), 0.95)
    assert labels(found)[:3] == ["drain_s", "sustained_throughput_ops_s", "throughput_ops_s"]
    assert found.ratios[0].ratio is None
    assert len(labels(found)) == len(set(labels(found)))


def test_several_workloads_have_the_weighted_mean() -> None:
    goal = Goal((Objective(),), (0.25, 0.75))
    baseline = [[run_of(phase(100.0)), run_of(phase(100.0))]] * 2
    candidate = [[run_of(phase(1600.0)), run_of(phase(100.0))]] * 2
    burst = ratios_of(goal, baseline, candidate, 0.95).ratios[0]
    assert burst.ratio == pytest.approx(2.0)


def test_the_phase_that_is_judged_is_the_one_that_is_shown() -> None:
    def both(put: float) -> Sequence[Sequence[Measurement]]:
        phases = (replace(phase(put), name="put"), replace(phase(7.0), name="get"))
        return [[run_of(*phases)]] * 2

    goal = Goal((Objective(phase="put"),))
    found = ratios_of(goal, both(100.0), both(300.0), 0.95)
    burst = found.ratios[0]
    assert (burst.metric, burst.ratio) == ("put.throughput_ops_s", pytest.approx(3.0))
    assert {"total_elapsed_s", "total_with_drain_s"} <= set(labels(found))


def test_what_a_program_reports_has_no_direction() -> None:
    goal = Goal((Objective("score", Direction.MAXIMIZE),))
    baseline, candidate = [[run_of(score=2.0, cost=8.0)]] * 2, [[run_of(score=2.0, cost=4.0)]] * 2
    (cost,) = ratios_of(goal, baseline, candidate, 0.95).ratios
    assert (cost.metric, cost.direction, cost.ratio) == ("cost", "", pytest.approx(0.5))


def test_a_throughput_that_a_program_reports_is_shown_once_and_better_where_it_is_higher() -> None:
    """It was there a second time, as if less of it were better, and widened all intervals."""
    goal = Goal((Objective("cost", Direction.MINIMIZE),))
    slow, fast = (
        [[run_of(cost=4.0 + n, throughput_ops_s=speed * n)] for n in range(1, PAIRS)]
        for speed in (1.0, 1.5)
    )
    found = ratios_of(goal, slow, fast, 0.95)
    assert [(each.metric, each.direction) for each in found.ratios] == [
        ("throughput_ops_s", "maximize")
    ]
    assert found.each == pytest.approx(0.95)


def test_what_is_shown_only_has_a_ratio_and_widens_no_interval() -> None:
    goal = Goal((Objective(),))
    sides = [[[run_of(phase(1.0 + i), phase(2.0 + i))] for i in range(8)] for _ in range(2)]
    before = ratios_of(goal, *sides, 0.95)
    shown_only = {**BY_NAME, "throughput_ops_s": replace(BY_NAME["throughput_ops_s"], judged=False)}
    with mock.patch("lsmtune.proof.verdict.BY_NAME", shown_only):
        after = ratios_of(goal, *sides, 0.95)
    assert labels(after) == labels(before)
    assert before.each is not None
    assert after.each is not None
    assert after.each < before.each
    burst = next(each for each in after.ratios if each.metric == "throughput_ops_s")
    assert burst.ratio == pytest.approx(1.0)
    assert (burst.ratio_low, burst.ratio_high) == (None, None)
