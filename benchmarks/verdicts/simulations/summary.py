"""From how simulated studies ended to rates, and to what breaks a promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy import stats as distributions

from lsmtune.model.verdict import VerdictOutcome
from simulations.playing import Look
from simulations.scenarios import Scenario

_INTERVAL_CONFIDENCE = 0.95
# A rate breaks its promise when chance alone would show it so far off in fewer than one of a
# thousand simulations: with some sixty rates, a run of all of them is wrong once in sixteen at
# most.
_CHANCE = 1e-3


@dataclass(frozen=True)
class Rate:
    """`count` of `of`, as a `share` with its interval at 95 % (Clopper and Pearson)."""

    count: int
    of: int
    share: float
    low: float
    high: float

    def is_above(self, level: float) -> bool:
        """Whether the true rate is above `level`, beyond what the simulation's error explains."""
        return float(distributions.binom.sf(self.count - 1, self.of, level)) < _CHANCE

    def is_below(self, level: float) -> bool:
        """Whether the true rate is below `level`, beyond what the simulation's error explains."""
        return float(distributions.binom.cdf(self.count, self.of, level)) < _CHANCE


def rate(count: int, of: int) -> Rate:
    """The rate of `count` in `of` >= 1 (C. J. Clopper, E. S. Pearson, Biometrika 26, 1934)."""
    tail = (1.0 - _INTERVAL_CONFIDENCE) / 2.0
    # The quantiles of the beta distribution; at the ends the interval is one-sided.
    low = 0.0 if count == 0 else float(special.betaincinv(count, of - count + 1, tail))
    high = 1.0 if count == of else float(special.betaincinv(count + 1, of - count, 1.0 - tail))
    return Rate(count, of, count / of, low, high)


def rate_of(happened: list[bool]) -> Rate:
    """The rate of what is true."""
    return rate(sum(happened), len(happened))


@dataclass(frozen=True)
class Summary:
    """How the studies of one scenario ended, by one way to decide.

    `wrong_rate`: a verdict that is not true (in A/A: any difference, the false positives; else the
    wrong direction, or `equivalent` though the difference matters). `power`: the true difference
    was proved; None in A/A. `equivalent_rate`: None where nothing was said to be too small.
    `coverage`: the interval at the end held the true ratio; None where there is no interval.
    `ratio_median`: of what the studies said the ratio is.
    """

    wrong_rate: Rate
    power: Rate | None
    equivalent_rate: Rate | None
    not_proven_rate: Rate
    coverage: Rate | None
    pairs_median: float
    ratio_median: float


def summarise(scenario: Scenario, looks: Sequence[Look], *, has_interval: bool = True) -> Summary:
    """The rates of at least one study; `looks` are those at which the studies ended."""
    right = VerdictOutcome.BETTER if scenario.ratio > 1.0 else VerdictOutcome.WORSE
    outcomes = [look.outcome for look in looks]
    held = [look.low <= scenario.ratio <= look.high for look in looks]
    equivalent = [outcome is VerdictOutcome.EQUIVALENT for outcome in outcomes]
    return Summary(
        wrong_rate=rate_of([_is_wrong(outcome, scenario) for outcome in outcomes]),
        power=None if scenario.is_equal else rate_of([outcome is right for outcome in outcomes]),
        equivalent_rate=None if scenario.smallest_effect is None else rate_of(equivalent),
        not_proven_rate=rate_of([outcome is VerdictOutcome.NOT_PROVEN for outcome in outcomes]),
        coverage=rate_of(held) if has_interval else None,
        pairs_median=float(np.median([look.pairs for look in looks])),
        ratio_median=float(np.median([look.ratio for look in looks])),
    )


def broken_promises(name: str, summary: Summary, confidence: float) -> list[str]:
    """A line for each rate of a proof that is off its stated level by more than chance."""
    level = 1.0 - confidence
    lines = []
    if summary.wrong_rate.is_above(level):
        wrong = summary.wrong_rate
        lines.append(f"{name}: {_per_cent(wrong)} of the verdicts are wrong; stated: {level:.3g}")
    if summary.coverage is not None and summary.coverage.is_below(confidence):
        held = _per_cent(summary.coverage)
        lines.append(f"{name}: {held} of the intervals hold the truth; stated: {confidence:.3g}")
    return lines


def _per_cent(rate: Rate) -> str:
    return f"{rate.share:.3g} ({rate.low:.3g} to {rate.high:.3g})"


def _is_wrong(outcome: VerdictOutcome, scenario: Scenario) -> bool:
    if outcome is VerdictOutcome.BETTER:
        return scenario.ratio <= 1.0
    if outcome is VerdictOutcome.WORSE:
        return scenario.ratio >= 1.0
    if outcome is VerdictOutcome.EQUIVALENT:
        limit = 1.0 + (scenario.smallest_effect or 0.0)
        return not 1.0 / limit <= scenario.ratio <= limit
    return False
