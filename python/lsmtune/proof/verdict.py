"""From the values of pairs to a Verdict: pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lsmtune.records.objective import Direction
from lsmtune.records.verdict import Verdict, VerdictOutcome
from lsmtune.stats.paired import MINIMUM_PAIRS, RatioInterval
from lsmtune.stats.sequential import pairs_at_least, sequential_ratio


class Judged(Protocol):
    """What a verdict has to know of an Objective or a Goal."""

    @property
    def metric(self) -> str:
        """What the values are."""

    @property
    def direction(self) -> Direction:
        """Which way they are better."""

    def better(self, value: float, other: float) -> bool:
        """Whether `value` is better than `other`."""


@dataclass(frozen=True)
class Tally:
    """What the pairs of a proof observed.

    Element i of both sides is of the same pair; a pair with a failed run is in neither, and is
    counted in `failed`. `note` says in one line why there are fewer pairs than were planned.
    `disqualified` says why the candidate cannot be better, whatever the values say.
    `data_lost`: the candidate lost data.
    """

    baseline: Sequence[float] = ()
    candidate: Sequence[float] = ()
    failed: int = 0
    note: str = ""
    disqualified: str = ""
    data_lost: bool = False


def judge(
    tally: Tally,
    goal: Judged,
    confidence: float,
    *,
    smallest_effect: float | None = None,
) -> Verdict:
    """The verdict on the candidate, which may be asked for after every pair.

    `better` or `worse` when the interval of candidate over baseline excludes 1; `equivalent`
    when `smallest_effect` e > 0 is given and the interval lies from 1 / (1 + e) to 1 + e: then a
    difference is too small to matter, proven or not. The interval is `sequential_ratio`'s, which
    holds at all looks together, so that a proof may stop as soon as it says one of these. A
    candidate of which a run failed is never `better` or `equivalent`; one that lost data is
    `worse`.
    """
    interval, trouble = _interval(tally, confidence)
    outcome = VerdictOutcome.NOT_PROVEN
    if tally.data_lost:
        outcome = VerdictOutcome.WORSE
    elif interval is not None:
        outcome = _outcome(interval, goal, smallest_effect)
    if tally.disqualified and outcome is not VerdictOutcome.WORSE:
        outcome = VerdictOutcome.NOT_PROVEN
    reasons = [tally.disqualified, tally.note]
    reasons += [] if any(reasons) else [trouble]
    if outcome is VerdictOutcome.NOT_PROVEN and not any(reasons):
        reasons = ["the interval includes 1"]
    low, high = (None, None) if interval is None else bounds_of(interval)
    return Verdict(
        outcome=outcome,
        metric=goal.metric,
        direction=goal.direction.value,
        confidence=confidence,
        pairs=len(tally.baseline),
        pairs_failed=tally.failed,
        ratio=interval.ratio if interval else None,
        ratio_low=low,
        ratio_high=high,
        baseline_values=tuple(tally.baseline),
        candidate_values=tuple(tally.candidate),
        why="; ".join(reason for reason in reasons if reason),
    )


def not_proven(goal: Judged, confidence: float, why: str) -> Verdict:
    """The verdict when there was nothing to prove."""
    return judge(Tally(disqualified=why), goal, confidence)


def bounds_of(interval: RatioInterval) -> tuple[float | None, float | None]:
    """The ends of `interval`; None where it has no end on that side."""
    low = interval.low if interval.low > 0.0 else None
    return low, interval.high if math.isfinite(interval.high) else None


def _interval(tally: Tally, confidence: float) -> tuple[RatioInterval | None, str]:
    """The interval, and why there is none or why it proves nothing."""
    pairs, needed = len(tally.baseline), pairs_at_least(confidence)
    few = ""
    if pairs < needed:
        few = f"only {pairs} complete pairs; an interval at {confidence:.4g} needs {needed}"
    if pairs < MINIMUM_PAIRS:
        return None, few
    try:
        return sequential_ratio(tally.baseline, tally.candidate, confidence), few
    except ValueError as error:
        # A metric that can be zero, such as the stall time, has no ratio.
        return None, str(error)


def _outcome(
    interval: RatioInterval, goal: Judged, smallest_effect: float | None
) -> VerdictOutcome:
    if smallest_effect is not None:
        limit = 1.0 + smallest_effect
        if interval.low >= 1.0 / limit and interval.high <= limit:
            return VerdictOutcome.EQUIVALENT
    if not interval.excludes_one():
        return VerdictOutcome.NOT_PROVEN
    better = goal.better(interval.ratio, 1.0)
    return VerdictOutcome.BETTER if better else VerdictOutcome.WORSE
