"""A Verdict: the outcome of a proof, with its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class VerdictOutcome(StrEnum):
    """What a proof can say. `better` is in the objective's direction, whichever that is."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    NOT_PROVEN = "not_proven"


@dataclass(frozen=True)
class MetricRatio:
    """Candidate over baseline in one metric; None where no interval can be had, or no bound.

    `direction` is empty where nobody said which way the metric is better.
    """

    metric: str
    direction: str
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None


@dataclass(frozen=True)
class GuardResult:
    """A guard as a constraint's text, and in how many of the `pairs` that tell it was broken.

    Of several measure phases, `where` is the one that counts: one that breaks it before one that
    holds, and of those the one in which most pairs broke it; empty where there is one, or all are
    alike. `ratio` is the candidate's over the baseline's value of the guard's metric, with its
    bounds at 95 %, where the guard names one metric and every pair observed it.
    """

    guard: str
    pairs: int
    broken: int
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    where: str = ""

    @property
    def held(self) -> bool | None:
        """Whether no more than half of the pairs broke it; None where no pair tells."""
        return 2 * self.broken <= self.pairs if self.pairs else None


@dataclass(frozen=True)
class ProvedAt:
    """What the pairs ran of one workload: `records`, and medians of counts in the measure phases.

    None where a run does not know how often it flushed or compacted. `share_of_target`: how much of
    the data that the user stated; below 1 in a model of them. `warmup_operations`: what came before
    the measure phases, after the load.
    """

    workload: str
    records: int
    operations: int
    baseline_flushes: int | None = None
    candidate_flushes: int | None = None
    baseline_compactions: int | None = None
    candidate_compactions: int | None = None
    share_of_target: float = 1.0
    warmup_operations: int = 0


@dataclass(frozen=True)
class Verdict:
    """Candidate over baseline: `ratio` is the geometric mean of the pairs' ratios of `metric`.

    `ratio_low` and `ratio_high` bound it at `confidence`, however often the proof was looked at;
    None when there is no bound yet. `pairs` counts the pairs in which both runs ended `ok`;
    `pairs_failed` the others. `method` is the `PairMethod` of all of them, empty where hosts of a
    fleet had several.

    `others` has every other metric that was observed, each objective of several first. Their
    intervals hold all together at `confidence`, as each is at `confidence_each` (Bonferroni).

    `pairs_wanted`: about how many pairs in all would prove something, where these did not and it
    can be told; `what_it_takes` says it in words. `notes` are what else must be known.
    `guards`: the price, one entry for each that was asked for. `proved_at`: the size and the length
    of the runs, one entry for each workload.
    """

    outcome: VerdictOutcome
    metric: str
    direction: str
    confidence: float
    pairs: int
    pairs_failed: int = 0
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    baseline_values: tuple[float, ...] = ()
    candidate_values: tuple[float, ...] = ()
    why: str = ""
    others: tuple[MetricRatio, ...] = ()
    method: str = ""
    confidence_each: float | None = None
    pairs_wanted: int | None = None
    what_it_takes: str = ""
    notes: tuple[str, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    proved_at: tuple[ProvedAt, ...] = ()

    def but(self, outcome: VerdictOutcome, why: str) -> Verdict:
        """The same figures with another outcome: `why`, before what was the reason so far."""
        return replace(self, outcome=outcome, why="; ".join(filter(None, [why, self.why])))

    @property
    def share_of_target(self) -> float:
        """The share of the target's data that the pairs had; 1 where nothing says otherwise."""
        return min((at.share_of_target for at in self.proved_at), default=1.0)

    @property
    def breaks_guard(self) -> bool:
        """Whether the candidate costs more than a guard allows."""
        return any(guard.held is False for guard in self.guards)
