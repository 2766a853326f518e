"""The tidy tables that analysis yields: frozen, plain values, units last in each name.

A report renders these and computes nothing. None means not known, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Outcome, Percentiles

# The metric of a study with several objectives: the weighted geometric mean of their ratios to the
# baseline, each turned over where less is better; more is better.
GAIN = "gain over the baseline"

# A row that tables and JSON alone read: its keys are those of the JSON, and what columns ask for.
Row = dict[str, Any]


class Arm(StrEnum):
    """Which side of a comparison a run is on; in a plot, the tone of that side."""

    BASELINE = "baseline"
    TUNED = "tuned"


@dataclass(frozen=True)
class Censored:
    """Where a pruned trial was stopped: at which `rung`, and the `value` that it had come to.

    The rung is a time (`reached_s`, seconds of the measure phase; the value is the rate so far, in
    operations per second), a size (`reached_keys`; the value is that of the smaller run), or, with
    neither, a step at which a program of the user's own reported the objective. All values are as
    the machine was in the beginning.
    """

    rung: int
    reached_s: float | None = None
    reached_keys: int | None = None
    value: float | None = None


@dataclass(frozen=True)
class TrialRun:
    """One run of a trial under every workload: its `value` as measured.

    `judged` is what it would have been in the beginning of the study, by the anchors around it.
    `counts`: the trial's value is a mean over this one.
    """

    value: float | None
    judged: float | None
    counts: bool


@dataclass(frozen=True)
class TrialRow:
    """One trial in the order of the search; `best_so_far` counts this trial too.

    It does not count trials that failed or broke a constraint when they ran on more data.

    `value` is the mean of its `runs` that count, as the machine was in the beginning; `spread` is
    half of their range over their median. `values` has one value per objective; `broken` the
    constraints on outcomes that it broke, so that it cannot be the best. `censored` says where a
    pruned trial was stopped, `run_again_after_change` that the machine changed while it ran first,
    and that it has been run again for that.
    """

    trial: int
    outcome: Outcome
    value: float | None
    best_so_far: float | None
    ratio_to_baseline: float | None
    is_best: bool
    is_tuned: bool
    elapsed_s: float
    options: Mapping[str, OptionValue]
    error: str
    values: tuple[float, ...] | None
    broken: tuple[str, ...]
    censored: Censored | None
    runs: tuple[TrialRun, ...]
    spread: float | None
    run_again_after_change: bool


@dataclass(frozen=True)
class History:
    """The search: trials in order beside the baseline's runs; `baseline_value` is their median.

    All values are as the machine was in the beginning. `best_from` says what the best value comes
    from: the search, whose best is the luckiest of many, and never the proof. `lifted_trial` is
    better than the best, and breaks guards and nothing else; None where there is none.
    """

    trials: tuple[TrialRow, ...]
    baseline_values: tuple[float, ...]
    baseline_value: float | None
    best_trial: int | None
    best_value: float | None
    best_ratio: float | None
    lifted_trial: int | None = None
    best_from: str = "search"


@dataclass(frozen=True)
class PairRow:
    """One pair of the proof; `ratio` is tuned over baseline, None unless both runs have a value.

    `method` is how its runs shared the machine; a pair that does not `counts` was run by another
    method than the verdict stands on.
    """

    pair: int
    baseline_value: float | None
    tuned_value: float | None
    ratio: float | None
    baseline_outcome: Outcome
    tuned_outcome: Outcome
    method: str = ""
    counts: bool = True


@dataclass(frozen=True)
class LatencyCurve(Percentiles):
    """Latency of one operation type on one arm, merged over `runs` runs."""

    arm: Arm
    operation: str
    runs: int
    count: int
    points: list[Row]
    latency_us_max: float


# --- What mattered, fronts and workloads, and where the time of a study went


@dataclass(frozen=True)
class ImportanceRow:
    """How much one parameter mattered: the mean over the resamples, and how sure that is.

    `importance` is a share of 1: for PED-ANOVA of the importance of all parameters, for fANOVA of
    the variance. `*_low` and `*_high` bound the middle of the resamples (`Importance.interval`);
    `rank_share` is the share of the resamples in which the parameter had just this `rank`.
    `above_chance`: in nearly every resample it came out above a variable of random numbers.
    `trials` counts those in which it was active, `values_tried` its different values in them.
    """

    parameter: str
    importance: float
    importance_low: float
    importance_high: float
    rank: int
    rank_low: int
    rank_high: int
    rank_share: float
    above_chance: bool
    trials: int
    values_tried: int


@dataclass(frozen=True)
class Importance:
    """The importance of the parameters for one objective, the most important first.

    `trials` have a value; `trials_without_value` failed or were pruned, and counted as worse than
    every other. `chance` is the mean importance of a variable of random numbers. `why` says why
    there are no rows.
    """

    metric: str
    method: str
    interval: float
    trials: int
    trials_without_value: int
    resamples: int
    chance: float = 0.0
    rows: tuple[ImportanceRow, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class FrontRow:
    """A trial that no other beats in every objective; `ratios` are to the baseline.

    `gain` is the weighted geometric mean of the ratios, as `GAIN`. `is_picked` marks the one that
    the study's pick chooses.
    """

    trial: int
    values: tuple[float, ...]
    ratios: tuple[float | None, ...]
    gain: float | None
    is_picked: bool
    is_tuned: bool
    options: Mapping[str, OptionValue]


@dataclass(frozen=True)
class Front:
    """The trials among which a study with several objectives chooses.

    `objectives` are labels, `metrics` what they are values of; `others` are the trials that are
    not on the front, as number and values, those that broke a constraint among them.
    """

    objectives: tuple[str, ...]
    metrics: tuple[str, ...]
    directions: tuple[str, ...]
    weights: tuple[float, ...]
    baseline: tuple[float, ...] | None
    rows: tuple[FrontRow, ...]
    others: tuple[tuple[int, tuple[float, ...]], ...]


# --- Whether figures can be trusted: anchors, noise, how the proof went, conditions


@dataclass(frozen=True)
class AnchorPoint:
    """One run of the baseline in the series: `value` as measured.

    `at_s` is how long the study had worked when it ended, over all sessions, `trials_before` how
    many trials had been begun. `segment` counts from 0 within its AnchorSeries.
    """

    role: str
    at_s: float
    trials_before: int
    value: float
    segment: int | None


@dataclass(frozen=True)
class AnchorSegment:
    """Anchors between which the machine was the same; `level` is their median, of logarithms."""

    from_s: float
    to_s: float
    level: float
    anchors: int


@dataclass(frozen=True)
class MachineChange:
    """The machine changed between `from_s` and `to_s`; `ratio` is the level after over before.

    `first_trial` is the first that was begun after it, None where there was none; `last_trial` the
    last before it. `run_again` are the trials that ran meanwhile and have been run again since,
    `left` those that have not been.
    """

    from_s: float
    to_s: float
    ratio: float
    last_trial: int | None
    first_trial: int | None
    run_again: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


@dataclass(frozen=True)
class AnchorSeries:
    """The baseline's runs through the study in one objective, in the order of time.

    `anchors_least` is the length of the shortest series in which a change can be seen.
    """

    objective: str
    metric: str
    anchors_least: int
    points: tuple[AnchorPoint, ...]
    segments: tuple[AnchorSegment, ...]
    changes: tuple[MachineChange, ...]


class NoiseSource(StrEnum):
    """Which runs tell of the noise."""

    CALIBRATION = "calibration"  # the baseline against itself, before the search
    SEARCH = "search"  # anchors and trials that were run again; with a guess while they are few
    PROOF = "proof"  # the pairs of the verdict


@dataclass(frozen=True)
class NoiseRow:
    """How much `metric` scatters from run to run, or from pair to pair (`of_pairs`).

    `log_sd` is the standard deviation of the logarithm of a run's value, or of a pair's ratio, with
    an interval at 95 % where one can be had; `count` says of how many runs or pairs. In `pairs`
    pairs of this noise a proof shows a difference of `smallest_effect` (0.05 is 5 %) with a
    probability of 80 %; None where it is not known, or nothing can be proved with so few, and both
    for a fleet, whose interval is one over hosts. `host` is one of a fleet, empty for the runs of
    all.
    """

    source: NoiseSource
    of_pairs: bool
    metric: str
    count: int | None
    log_sd: float
    log_sd_low: float | None = None
    log_sd_high: float | None = None
    autocorrelation: float | None = None
    pairs: int | None = None
    smallest_effect: float | None = None
    host: str = ""


class Ended(StrEnum):
    """What ended a proof."""

    DECIDED = "decided"  # the interval excludes no difference
    EQUIVALENT = "equivalent"  # it lies within what is too small to matter
    PAIRS = "pairs"  # all pairs that were planned were run
    OTHER = "other"  # what the verdict's `why` says


@dataclass(frozen=True)
class ProofFacts:
    """How the proof was made, beside what its Verdict says.

    `pairs_max` and `smallest_effect` are those of the study file. `pairs_least_each` is how many
    pairs the intervals of the other metrics need at the least, None where these were not corrected.
    `ended` is None for a verdict without a pair, and for a fleet: what it saw ended nothing, as the
    number of pairs of each host was fixed before.
    """

    ended: Ended | None
    pairs_max: int
    smallest_effect: float | None
    pairs_least_each: int | None


@dataclass(frozen=True)
class Conditions:
    """Under what the runs were made.

    `page_cache` maps workloads to what was declared for them. Of the runs that were to begin cold,
    `cold_runs`, the largest share of the database that was still cached is `cached_share_max`, None
    where no run could find out. `memory_limited_by` counts the runs by what held their memory. The
    host took `steal_share_median` and at most `steal_share_max` of the processors' time from a run;
    `steal_runs` tell of it, and from `steal_runs_disturbed` it took more than `STEAL_SHARE_MAX`.
    """

    page_cache: Mapping[str, str]
    cold_runs: int
    cached_share_max: float | None
    memory_limited_by: Mapping[str, int]
    steal_runs: int
    steal_runs_disturbed: int
    steal_share_median: float | None
    steal_share_max: float | None
