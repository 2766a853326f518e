"""Calibration: the baseline against itself, and what the machine can prove by that.

The pairs are those of a proof, by the proof's own method, on seeds of their own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.run_length import factor_advised, length_warnings
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.goal import Goal, Objective, default_direction
from lsmtune.model.metrics import shown_in
from lsmtune.model.request import PairMethod
from lsmtune.proof.pairs import (
    FAILURES_TOLERATED,
    Pair,
    PairSeries,
    Planned,
    failed,
    measurements,
    pairs_by_side,
    seconds_each,
)
from lsmtune.stats.noise import detectable_effect, noise_of, pairs_needed
from lsmtune.stats.sequential import pairs_at_least

# Two pairs have a spread; fewer say nothing of one.
PAIRS_LEAST = 2


@dataclass(frozen=True)
class MetricNoise:
    """How one metric varies while nothing is changed; spreads are standard deviations of logs.

    `run_log_sd` is that of single runs, with an interval at 95 %; `autocorrelation` that of
    neighbouring runs, None where too few tell. `pair_log_sd`, with its interval, is that of the
    ratio of the two runs of a pair, of which either goes first. `second_over_first` is the
    median of what going second makes of a run.
    """

    run_log_sd: float
    run_log_sd_low: float
    run_log_sd_high: float
    autocorrelation: float | None
    pair_log_sd: float
    pair_log_sd_low: float
    pair_log_sd_high: float
    second_over_first: float


@dataclass(frozen=True)
class Calibration:
    """What `pairs` pairs of the baseline with itself showed, by `method`.

    `why` says why it is not the method that would be taken else. `metrics` is empty with fewer
    than `PAIRS_LEAST` pairs; the goal's own metric comes first, and one that is not above zero in
    each run has no noise in logs and is left out. `factor` is how many times as long a run should
    be, None where that is not known; `warnings` say why. Both are of the last run that went first,
    under each workload.
    """

    method: PairMethod
    pairs: int
    pairs_failed: int = 0
    seconds_per_pair: float | None = None
    metrics: Mapping[str, MetricNoise] = field(default_factory=dict)
    factor: float | None = None
    warnings: tuple[str, ...] = ()
    why: str = ""


def calibrate(
    baseline: Arm,
    goal: Goal,
    measurer: Measurer,
    *,
    study_seed: int,
    pairs: int,
    method: PairMethod | None = None,
    deadline_s: float | None = None,
) -> Calibration:
    """Run `baseline` against itself until there are so many complete pairs, and say how it varies.

    Both sides of pair k have the seed number k of stream CALIBRATION. `method` None leaves the
    choice to `proof.pairs.choose`, as a proof does. Pairs that the folder holds count, and no pair
    goes on after `deadline_s` seconds from now, nor is begun that would; so there may be fewer. It
    ends early when the measurer's stop event is set, and when more than `FAILURES_TOLERATED` pairs
    failed, which its observer is warned of. Raises what `Measurer.measure_pair` raises.
    """
    until_s = math.inf if deadline_s is None else measurer.clock() + deadline_s
    rows = measurer.folder.measurements.of(Role.CALIBRATION)
    stored = calibration_pairs(rows, baseline.config, len(measurer.workloads))
    last = max((run.pair for run in rows if run.pair is not None), default=-1)

    def plan(number: int) -> Planned:
        slot = Slot(Role.CALIBRATION, number, pair=number)
        sides = (baseline, slot), (baseline, replace(slot, repeat=1))
        return Planned(derive_seed(study_seed, Stream.CALIBRATION, number), *sides)

    series = PairSeries(measurer, stored, last + 1, plan, method)
    while True:
        choice = series.choice()
        by_method = series.by(choice.method)
        bad = sum(failed(pair.runs) for pair in by_method)
        in_time = measurer.clock() + seconds_each(by_method) <= until_s
        if len(by_method) - bad >= pairs or bad > FAILURES_TOLERATED or not in_time:
            break
        if not series.run_next(choice.method, until_s):
            break
    if bad > FAILURES_TOLERATED:
        measurer.observer.warning(f"calibration ended early: {bad} pairs of runs failed")
    return calibration_of(by_method, goal, choice.method, choice.why)


def calibration_of(
    pairs: Sequence[Pair], goal: Goal, method: PairMethod, why: str = ""
) -> Calibration:
    """What stored pairs by `method`, in the order in which they were run, show."""
    good = [pair for pair in pairs if not failed(pair.runs)]
    last = measurements(good[-1].baseline) if good else []
    factors = [factor for run in last if (factor := factor_advised(run)) is not None]
    return Calibration(
        method=method,
        pairs=len(good),
        pairs_failed=len(pairs) - len(good),
        seconds_per_pair=statistics.median(pair.wall_s for pair in good) if good else None,
        metrics=dict(_noises(good, goal)) if len(good) >= PAIRS_LEAST else {},
        factor=max(factors, default=None),
        warnings=tuple(dict.fromkeys(line for run in last for line in length_warnings(run))),
        why=why,
    )


def calibration_pairs(
    rows: Iterable[StoredMeasurement], baseline: Config, workloads: int
) -> list[Pair]:
    """The pairs of `baseline` with itself among `rows`, by number, of all methods.

    Those that were cut off are left out. The side that went first is the `baseline` of each.
    """
    options = dict(baseline.options)
    own = (run for run in rows if run.role is Role.CALIBRATION)
    own = (run for run in own if dict(run.config.options) == options)
    return pairs_by_side(own, lambda run: run.repeat, workloads)


def _noises(pairs: Sequence[Pair], goal: Goal) -> Iterator[tuple[str, MetricNoise]]:
    """What decides first, then what a verdict reports: each metric as a Goal of its own."""
    sides = [(measurements(pair.baseline), measurements(pair.candidate)) for pair in pairs]
    phase = goal.objectives[0].phase
    programs = dict.fromkeys(name for run in sides[0][0] for name in run.reported)
    objectives = [Objective(name, default_direction(name), phase) for name in shown_in("verdict")]
    objectives += [Objective(name) for name in programs]
    alone = {o.label: Goal((o,), goal.shares) for o in (*goal.objectives, *objectives)}
    for name, metric in ({goal.metric: goal} | alone).items():
        values = [(metric.value(first), metric.value(second)) for first, second in sides]
        known = [(a, b) for a, b in values if a is not None and b is not None and min(a, b) > 0]
        if len(known) == len(values):
            yield name, metric_noise(known)


def metric_noise(values: Sequence[tuple[float, float]]) -> MetricNoise:
    """How one metric varies over pairs (first run, second run) of values above zero, in time order.

    In a proof a coin decides which side of a pair goes first, so that what going second makes of a
    run adds to the scatter of its ratios. It is the median of the log ratios here, less the square
    that chance alone gives to a median: pi / 2 times the variance over the pairs.
    """
    run = noise_of([value for pair in values for value in pair])
    ratios = [second / first for first, second in values]
    scatter, middle = noise_of(ratios), math.log(statistics.median(ratios))
    by_chance = math.pi / 2 * scatter.log_sd**2 / len(ratios)
    second = math.sqrt(max(0.0, middle**2 - by_chance))
    return MetricNoise(
        run_log_sd=run.log_sd,
        run_log_sd_low=run.log_sd_low,
        run_log_sd_high=run.log_sd_high,
        autocorrelation=run.autocorrelation,
        pair_log_sd=math.hypot(scatter.log_sd, second),
        pair_log_sd_low=math.hypot(scatter.log_sd_low, second),
        pair_log_sd_high=math.hypot(scatter.log_sd_high, second),
        second_over_first=math.exp(middle),
    )


# --- what can be proved: by the sequential test, looked at after every pair, at a power of 80 %

# An effect that can be proved is nearly a multiple of the deviation, the same for all deviations
# (within 3 % from 0.003 to 0.4), so that one simulation of the test serves every metric.
_REFERENCE_LOG_SD = 0.05
_DEVIATIONS_MOST = 100.0  # far more than the least number of pairs needs


def pairs_within(calibration: Calibration, budget_s: float) -> int:
    """How many pairs of runs fit into a time; 0 where no pair has been timed."""
    if not calibration.seconds_per_pair:
        return 0
    return math.floor(budget_s / calibration.seconds_per_pair)


def smallest_effect(
    calibration: Calibration, metric: str, pairs: int, confidence: float = 0.95
) -> float | None:
    """The smallest effect on `metric` that a proof of so many `pairs` shows, 0.05 being 5 %.

    0 for a metric that does not vary. None where nothing can be proved with so few pairs, or the
    metric's noise is not known.
    """
    noise = calibration.metrics.get(metric)
    if noise is None or pairs < pairs_at_least(confidence):
        return None
    in_reference = detectable_effect(pairs, _REFERENCE_LOG_SD, confidence)
    return math.expm1(math.log1p(in_reference) / _REFERENCE_LOG_SD * noise.pair_log_sd)


def pairs_for(
    calibration: Calibration, metric: str, effect: float, confidence: float = 0.95
) -> int | None:
    """How many pairs show an `effect` above 0 on `metric`; None where its noise is not known."""
    noise = calibration.metrics.get(metric)
    if noise is None:
        return None
    if noise.pair_log_sd == 0.0:
        return pairs_at_least(confidence)
    deviations = math.log1p(effect) / noise.pair_log_sd
    in_reference = math.expm1(min(deviations, _DEVIATIONS_MOST) * _REFERENCE_LOG_SD)
    return pairs_needed(in_reference, _REFERENCE_LOG_SD, confidence)
