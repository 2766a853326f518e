"""A Verdict: the outcome of a proof, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class VerdictOutcome(StrEnum):
    """What a proof can say. `better` is in the objective's direction, whichever that is."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    NOT_PROVEN = "not_proven"


@dataclass(frozen=True)
class MetricRatio:
    """Candidate over baseline in one metric; None where no interval can be had."""

    metric: str
    direction: str
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None


@dataclass(frozen=True)
class Verdict:
    """Candidate over baseline: `ratio` is the geometric mean of the pairs' ratios of `metric`.

    `ratio_low` and `ratio_high` bound it at `confidence`; None when no interval can be had.
    `pairs` counts the pairs in which both runs ended `ok`; `pairs_failed` the others. `others` has
    each objective on its own where a study has several.
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
