"""Calibration: the baseline against itself, on a runner whose noise is known."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from fake_runner import FakeRunner, Noisy
from proof_parts import BASELINE, WORKLOAD, Recorder, arm, measurer_of

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.schedule import Stream, derive_seed
from lsmtune.experiment.store import Role
from lsmtune.model.codec import decode, encode
from lsmtune.model.goal import Direction, Goal, Objective
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import PairMethod, RunRequest
from lsmtune.proof.calibration import (
    Calibration,
    MetricNoise,
    calibrate,
    metric_noise,
    pairs_for,
    pairs_within,
    smallest_effect,
)
from lsmtune.stats.sequential import pairs_at_least, sequential_ratio

SUSTAINED, DRAIN = "sustained_throughput_ops_s", "drain_s"


def calibrated(
    folder: StudyFolder,
    runner: FakeRunner,
    pairs: int = 6,
    *,
    observer: Recorder | None = None,
    goal: Goal | None = None,
    workloads: int = 1,
    deadline_s: float | None = None,
) -> Calibration:
    observer = observer or Recorder()
    measurer = measurer_of(folder, runner, observer, runner, [WORKLOAD] * workloads)
    return calibrate(
        arm(BASELINE),
        goal or Goal((Objective(),)),
        measurer,
        study_seed=1,
        pairs=pairs,
        deadline_s=deadline_s,
    )


def test_pairs_of_the_baseline_share_seeds_of_their_own(folder: StudyFolder) -> None:
    runner = Noisy()
    found = calibrated(folder, runner, 6)
    seeds = [request.seed for request in runner.requests]
    assert seeds[::2] == seeds[1::2] == [derive_seed(1, Stream.CALIBRATION, k) for k in range(6)]
    assert not set(seeds) & {derive_seed(1, Stream.PROOF, k) for k in range(100)}
    rows = folder.measurements.all()
    assert {row.role for row in rows} == {Role.CALIBRATION}
    assert [(row.pair, row.repeat) for row in rows] == [(k // 2, k % 2) for k in range(12)]
    assert (found.method, found.pairs, found.pairs_failed) == (PairMethod.WHOLE, 6, 0)
    assert "not lsmtune's own driver" in found.why
    assert found.seconds_per_pair == 2.0


def test_noise_is_told_of_each_metric_that_is_above_zero(folder: StudyFolder) -> None:
    found = calibrated(folder, Noisy(0.1), 100)
    names = list(found.metrics)
    assert names[0] == SUSTAINED
    assert "throughput_ops_s" in names
    assert "latency_us_p99" not in names  # not observed
    assert DRAIN not in names  # always zero
    noise = found.metrics[SUSTAINED]
    assert noise.run_log_sd == pytest.approx(0.1, rel=0.2)
    assert noise.pair_log_sd == pytest.approx(0.1 * math.sqrt(2), rel=0.25)
    assert noise.pair_log_sd_low < noise.pair_log_sd < noise.pair_log_sd_high
    assert noise.autocorrelation == pytest.approx(0.0, abs=0.25)
    assert noise.second_over_first == pytest.approx(1.0, abs=0.06)
    assert found.metrics["database_bytes"].pair_log_sd == 0.0
    assert decode(Calibration, encode(found)) == found


def test_noise_is_told_of_what_a_program_reports(folder: StudyFolder) -> None:
    class Reporting(Noisy):
        def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
            found = super()._measurement(request, outcome)
            value = found.phases[0].throughput_ops_s
            return replace(found, reported={"my_time": value**2})

    found = calibrated(folder, Reporting(), 6)
    assert list(found.metrics)[-1] == "my_time"
    noise = found.metrics["my_time"]
    assert noise.run_log_sd == pytest.approx(2 * found.metrics[SUSTAINED].run_log_sd, rel=0.01)


def test_a_higher_confidence_takes_more_pairs() -> None:
    pairs = [pairs_for(noisy(0.1), "x", 0.05, confidence) or 0 for confidence in (0.95, 0.99)]
    assert 0 < pairs[0] < pairs[1]


def test_going_second_adds_to_the_noise_of_pairs() -> None:
    """A coin decides who goes first, so a proof pays for it: the simulated coin agrees."""
    random_ = np.random.default_rng(3)
    values = [(100.0, 80.0 * math.exp(0.01 * z)) for z in random_.standard_normal(400)]
    found = metric_noise(values)
    assert found.second_over_first == pytest.approx(0.8, rel=0.01)
    coins = random_.integers(0, 2, len(values)) * 2 - 1
    logs = [coin * math.log(b / a) for coin, (a, b) in zip(coins, values, strict=True)]
    assert found.pair_log_sd == pytest.approx(np.std(logs), rel=0.05)


def test_a_stored_calibration_goes_on_where_it_stopped(folder: StudyFolder) -> None:
    observer = Recorder()
    observer.stop_at = ("run_started", Role.CALIBRATION, 2)
    assert calibrated(folder, Noisy(), 5, observer=observer).pairs == 2
    runner = Noisy()
    assert calibrated(folder, runner, 5).pairs == 5
    assert len(runner.requests) == 6
    again = Noisy()
    assert calibrated(folder, again, 5).pairs == 5
    assert again.requests == []


def test_one_pair_says_nothing_of_noise(folder: StudyFolder) -> None:
    found = calibrated(folder, Noisy(), 1)
    assert (found.pairs, dict(found.metrics), found.seconds_per_pair) == (1, {}, 2.0)


def test_time_bounds_the_pairs(folder: StudyFolder) -> None:
    runner = Noisy()  # a pair takes 2 s of its clock
    assert calibrated(folder, runner, 100, deadline_s=7.0).pairs == 3
    assert len(runner.requests) == 6


def test_no_pair_goes_on_after_the_deadline(folder: StudyFolder) -> None:
    found = calibrated(folder, Noisy(fake_s=10.0), 100, deadline_s=5.0)
    assert found.pairs == 0
    assert folder.measurements.all() == []


def test_a_baseline_that_fails_now_and_then_is_run_again(folder: StudyFolder) -> None:
    bad = {derive_seed(1, Stream.CALIBRATION, k) for k in (0, 2)}
    fails = failing_seeds(bad)
    found = calibrated(folder, Noisy(fails=fails), 4)
    assert (found.pairs, found.pairs_failed) == (4, 2)


def test_a_baseline_that_keeps_failing_ends_it(folder: StudyFolder) -> None:
    observer = Recorder()
    found = calibrated(folder, Noisy(fails=lambda _: Outcome.CRASHED), 9, observer=observer)
    assert (found.pairs, found.pairs_failed) == (0, 3)
    assert ("warning", "calibration ended early: 3 pairs of runs failed") in observer.told


def failing_seeds(seeds: set[int]) -> Callable[[RunRequest], Outcome | None]:
    return lambda request: Outcome.CRASHED if request.seed in seeds else None


def test_several_workloads_and_objectives_have_one_number(folder: StudyFolder) -> None:
    objectives = (Objective(SUSTAINED), Objective("elapsed_s", Direction.MINIMIZE))
    goal = Goal(objectives, shares=(0.5, 0.5))
    runner = Noisy()
    found = calibrated(folder, runner, 3, goal=goal, workloads=2)
    assert len(runner.requests) == 12
    assert found.seconds_per_pair == 4.0
    assert list(found.metrics)[:3] == [goal.metric, SUSTAINED, "elapsed_s"]


def test_a_short_run_is_said_with_the_length_it_should_have(folder: StudyFolder) -> None:
    found = calibrated(folder, Noisy(), 2)
    assert found.factor == 5.0
    assert found.warnings == ("fillrandom: flushed 4 times; 20 make a rate of writing",)


# --- what can be proved


def noisy(pair_log_sd: float, seconds_per_pair: float | None = 2.0) -> Calibration:
    noise = MetricNoise(0.1, 0.1, 0.1, None, pair_log_sd, 0.0, 1.0, 1.0)
    return Calibration(PairMethod.WHOLE, 9, 0, seconds_per_pair, {"x": noise})


def test_more_time_proves_smaller_effects_and_less_noise_too() -> None:
    effects = [smallest_effect(noisy(0.1), "x", pairs) for pairs in (15, 30, 300, 1800)]
    assert all(effect is not None for effect in effects)
    assert effects == sorted(effects, key=lambda effect: -(effect or 0.0))
    quiet = smallest_effect(noisy(0.01), "x", 300)
    assert quiet is not None
    assert quiet == pytest.approx((effects[2] or 0.0) / 10, rel=0.1)


def test_nothing_is_claimed_where_nothing_can_be() -> None:
    least = pairs_at_least(0.95)
    assert smallest_effect(noisy(0.1), "x", least - 1) is None
    assert smallest_effect(noisy(0.1), "x", least) is not None
    assert smallest_effect(noisy(0.1), "y", 300) is None
    assert pairs_for(noisy(0.1), "y", 0.05) is None
    assert pairs_within(noisy(0.1, 7.0), 60.0) == 8
    assert pairs_within(noisy(0.1, None), 60.0) == 0


@pytest.mark.parametrize(("log_sd", "effect"), [(0.05, 0.05), (0.02, 0.05), (0.1, 0.02)])
def test_effect_and_pairs_are_inverse(log_sd: float, effect: float) -> None:
    pairs = pairs_for(noisy(log_sd), "x", effect)
    assert pairs is not None
    back = smallest_effect(noisy(log_sd), "x", pairs)
    # Pairs are whole: few of them show a little more than was asked for.
    assert back is not None
    assert 0.7 * effect < back < 1.01 * effect


def test_no_noise_needs_the_least_pairs() -> None:
    assert pairs_for(noisy(0.0), "x", 0.01) == pairs_at_least(0.95)
    assert smallest_effect(noisy(0.0), "x", 300) == 0.0
    assert (pairs_for(noisy(1e-7), "x", 0.01) or 0) <= pairs_at_least(0.95) + 1


def test_the_pairs_that_are_told_prove_the_effect_as_often_as_they_should() -> None:
    """Proofs of an effect of 5 % at the noise of a real machine, stopped when they say so."""
    log_sd, effect, proofs = 0.1, 0.05, 150
    pairs = pairs_for(noisy(log_sd), "x", effect)
    assert pairs is not None
    random_ = np.random.default_rng(4)
    logs = math.log1p(effect) + log_sd * random_.standard_normal((proofs, pairs))
    ones = [1.0] * pairs
    proved = sum(sequential_ratio(ones, list(np.exp(row))).low > 1.0 for row in logs)
    assert proved / proofs >= 0.8 - 4 * math.sqrt(0.8 * 0.2 / proofs)


def test_an_event_that_is_set_before_runs_nothing(folder: StudyFolder) -> None:
    observer = Recorder()
    observer.stop = threading.Event()
    observer.stop.set()
    runner = Noisy()
    assert calibrated(folder, runner, observer=observer).pairs == 0
    assert runner.requests == []
