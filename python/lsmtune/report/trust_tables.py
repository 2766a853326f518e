"""The tables on whether figures can be trusted: anchors, noise, how the proof went, conditions.

As in `tables`: frozen, plain values, units last in each name, None for what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lsmtune.report.tables import Arm


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
    SEARCH = (
        "search"  # the anchors, and trials that were run again; with a guess while they are few
    )
    PROOF = "proof"  # the pairs of the verdict


@dataclass(frozen=True)
class NoiseRow:
    """How much `metric` scatters from run to run, or from pair to pair (`of_pairs`).

    `log_sd` is the standard deviation of the logarithm of a run's value, or of a pair's ratio, with
    an interval at 95 % where one can be had; `count` says of how many runs or pairs. In `pairs`
    pairs of this noise a proof shows a difference of `smallest_effect` (0.05 is 5 %) with a
    probability of 80 %; None where it is not known, or nothing can be proved with so few.
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
    `ended` is None for a verdict of a lsmtune that planned a fixed number of pairs.
    """

    ended: Ended | None
    pairs_max: int
    smallest_effect: float | None
    pairs_least_each: int | None


@dataclass(frozen=True)
class PerformanceRow:
    """One figure of a measure phase: the median over the runs of each arm."""

    workload: str
    phase: str
    metric: str
    baseline: float | None
    tuned: float | None
    ratio: float | None


@dataclass(frozen=True)
class LevelRow:
    """One level of the tree under one phase on one arm, medians over its runs.

    `files` and `bytes` are those at the end of the phase; `compactions` those into this level
    during the phase, `flushes` for level 0.
    """

    workload: str
    phase: str
    arm: Arm
    level: int
    files: float | None
    bytes: float | None
    flushes: float | None
    flush_bytes: float | None
    compactions: float | None
    compaction_write_bytes: float | None


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
