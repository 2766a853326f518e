"""The tables on what mattered, on fronts and workloads, and on where the time of a study went.

As in `tables`: frozen, plain values, units last in each name, None for what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.records.config import OptionValue
from lsmtune.records.measurement import Outcome


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
