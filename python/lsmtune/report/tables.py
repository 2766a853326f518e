"""The tidy tables that analysis yields: frozen, plain values, units last in each name.

A report renders these and computes nothing. None means not known, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Outcome, Percentiles
from lsmtune.space.parameter import Parameter

# The metric of a study with several objectives: the weighted geometric mean of their ratios to the
# baseline, each turned over where less is better; more is better.
GAIN = "gain"


class Arm(StrEnum):
    """Which side of a comparison a run is on."""

    BASELINE = "baseline"
    TUNED = "tuned"


class Status(StrEnum):
    """Whether the study came to a verdict."""

    FINISHED = "finished"
    UNFINISHED = "unfinished"


class Severity(StrEnum):
    """How much a notice matters: for reading, for acting, or against deploying."""

    INFO = "info"
    WARNING = "warning"
    DANGER = "danger"


@dataclass(frozen=True)
class Censored:
    """Where a pruned trial was stopped: at which `rung`, and the `value` that it had come to.

    The rung is a time (`reached_s`, seconds of the measure phase; the value is the rate so far, in
    operations per second), a size (`reached_keys`; the value is that of the smaller run), or, with
    neither, a step at which a program of the user's own reported the objective.
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
class Told:
    """What the sampler is told of a trial: Optuna's word for how it ended, and a value each.

    `sd` is the standard deviation of the only value, a mean over `runs` runs; None where the
    sampler is told of no noise.
    """

    state: str
    values: tuple[float, ...] | None
    sd: float | None
    runs: int | None


@dataclass(frozen=True)
class TrialRow:
    """One trial in the order of the search; `best_so_far` counts this trial too.

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
    error: str = ""
    values: tuple[float, ...] | None = None
    broken: tuple[str, ...] = ()
    censored: Censored | None = None
    runs: tuple[TrialRun, ...] = ()
    spread: float | None = None
    told: Told | None = None
    run_again_after_change: bool = False


@dataclass(frozen=True)
class History:
    """The search: trials in order beside the baseline's runs; `baseline_value` is their median.

    All values are as the machine was in the beginning. `best_from` says what the best value comes
    from: the search, whose best is the luckiest of many, and never the proof.
    """

    trials: tuple[TrialRow, ...]
    baseline_values: tuple[float, ...]
    baseline_value: float | None
    best_trial: int | None
    best_value: float | None
    best_ratio: float | None
    best_from: str = "search"


@dataclass(frozen=True)
class PairRow:
    """One pair of the proof; `ratio` is tuned over baseline, None unless both runs have a value.

    `method` is how its runs shared the machine, empty where that was not noted; a pair that does
    not `counts` was run by another method than the verdict stands on.
    """

    pair: int
    baseline_value: float | None
    tuned_value: float | None
    ratio: float | None
    baseline_outcome: Outcome | None
    tuned_outcome: Outcome | None
    method: str = ""
    counts: bool = True


@dataclass(frozen=True)
class LatencyPoint:
    """`percentile` (0 to 100) of the operations took at most `latency_us`."""

    percentile: float
    latency_us: float


@dataclass(frozen=True)
class LatencyCurve(Percentiles):
    """Latency of one operation type on one arm, merged over `runs` runs."""

    arm: Arm
    operation: str
    runs: int
    count: int
    points: tuple[LatencyPoint, ...]
    latency_us_max: float


class Place(StrEnum):
    """Where a trial stands in the slice of a parameter."""

    RANGE = "range"  # a number of the range, or one of the choices
    SPECIAL = "special"  # a value outside the range that has a meaning of its own
    INACTIVE = "inactive"  # the parameter's condition did not hold


@dataclass(frozen=True)
class SlicePoint:
    """One trial in a slice: the option's value, None where it was inactive, and the objective's.

    `value` is None for a trial that failed or was pruned (`outcome` says which).
    """

    trial: int
    option_value: OptionValue | None
    value: float | None
    outcome: Outcome
    place: Place
    is_tuned: bool


@dataclass(frozen=True)
class Slice:
    """One option over all trials, those without a value and those without the option included."""

    parameter: Parameter
    points: tuple[SlicePoint, ...]
    baseline: OptionValue | None
    tuned: OptionValue | None


@dataclass(frozen=True)
class OutcomeCount:
    """How many runs in one role ended in one way."""

    role: str
    outcome: Outcome
    count: int


@dataclass(frozen=True)
class FailureRow:
    """Runs that failed alike; `trials` are the trials among them."""

    outcome: Outcome
    kind: str
    message: str
    count: int
    trials: tuple[int, ...]


@dataclass(frozen=True)
class SeriesPoint:
    """Throughput of the interval that ended `elapsed_s` after the phase began."""

    elapsed_s: float
    throughput_ops_s: float


@dataclass(frozen=True)
class Series:
    """The interval series of the objective's phase in one run."""

    arm: Arm
    measurement: int
    points: tuple[SeriesPoint, ...]
    workload: str = ""


@dataclass(frozen=True)
class OptionRow:
    """One option of the tuned Config beside the baseline's; None: the engine's default holds.

    `tuned_by_study` tells an option of the space from one that the study fixed; `engine_default` is
    known where the study file states it.
    """

    name: str
    baseline: OptionValue | None
    tuned: OptionValue | None
    tuned_by_study: bool
    unit: str = ""
    engine_default: OptionValue | None = None

    @property
    def changed(self) -> bool:
        """Whether the two arms differ in it."""
        return self.baseline != self.tuned


@dataclass(frozen=True)
class Notice:
    """Something the reader must know before trusting or deploying, with the next step in `text`."""

    severity: Severity
    kind: str
    title: str
    text: str


@dataclass(frozen=True)
class RunRow:
    """One stored run with the figures of the objective's phase, for tables and spreadsheets.

    `steal_s` are processor seconds that the host took during its measure phases, all processors
    together; `page_cache_cached_share` is the largest of a phase that was to begin cold.
    """

    measurement: int
    role: str
    trial: int | None
    pair: int | None
    outcome: Outcome
    value: float | None
    seed: int
    started_unix_s: float
    elapsed_s: float
    wall_s: float
    workload: str
    rung: int | None
    engine: str
    engine_version: str | None
    build: str
    options: Mapping[str, OptionValue]
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    repeat: int = 0
    paired_by: str = ""
    memory_limited_by: str = ""
    steal_s: float | None = None
    page_cache_cached_share: float | None = None


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


@dataclass(frozen=True)
class WorkloadRow:
    """One objective under one workload of several: medians of both arms, and their ratio."""

    workload: str
    share: float
    objective: str
    metric: str
    baseline: float | None
    tuned: float | None
    ratio: float | None


@dataclass(frozen=True)
class KindRow:
    """The trials that ended in one way, and what they cost."""

    outcome: Outcome
    trials: int
    total_s: float
    median_s: float
    share: float


@dataclass(frozen=True)
class RungRow:
    """The trials that were pruned at one rung: a time (`at_s`), a size (`at_keys`), or a step."""

    rung: int
    at_s: float | None
    at_keys: int | None
    trials: int
    total_s: float
    median_s: float


@dataclass(frozen=True)
class RoleRow:
    """What the runs of one role cost; `share` is of all that the study took."""

    role: str
    runs: int
    total_s: float
    median_s: float
    share: float


@dataclass(frozen=True)
class Statistics:
    """How the trials of a study ended and where its time went. All shares are of `spent_s`.

    `finished` counts every trial that ended, `complete` those with a value, `failed` those that
    neither have one nor were pruned; `without_pruning` is `finished` less `pruned`. `put_back`
    were cut off by an interruption and tried again; `refused` counts, by reason, the configurations
    that were refused before they cost a run; `broken` the trials that broke each constraint on
    outcomes. A budget that is None is open.
    """

    finished: int
    complete: int
    pruned: int
    failed: int
    without_pruning: int
    put_back: int
    refused: Mapping[str, int]
    broken: Mapping[str, int]
    kinds: tuple[KindRow, ...]
    rungs: tuple[RungRow, ...]
    roles: tuple[RoleRow, ...]
    spent_s: float
    budget_s: float | None
    budget_trials: int | None
