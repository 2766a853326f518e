"""Which trial may be the best, how sure that is, and which run would teach most: pure functions.

All numbers are logarithms of the goal's number, turned so that higher is better. A trial's *mean*
is that of its runs that count, its *posterior* what is to be believed of it: the runs of a trial
scatter around its true value with the standard deviation of a run, and the true values of trials
scatter around their median, so that the best of many single runs is mostly a lucky one. Both taken
as normal, the posterior is the mean drawn towards the median, the more the fewer runs there are
(empirical Bayes: C. Stein 1956; B. Efron, C. Morris, JASA 68, 1973; C. N. Morris, JASA 78, 1983).
The best trial is the one with the best posterior, not the one with the luckiest run.

A run that repeats a trial is worth its *knowledge gradient*: by how much the best posterior is
expected to rise because of it (P. Frazier, W. Powell, S. Dayanik, "A knowledge-gradient policy for
sequential information collection", SIAM J. Control Optim. 47, 2008). The first run of a new trial
is worth the same, with what those tried so far make one believe of it. A trial is repeated while
that gains more than going on, and while it may still be on either side of the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from scipy import special

# What the noise of a run is taken for before anything is known, and how many degrees of freedom
# that guess is worth: 5 %, which a quiet machine keeps below and a shared one soon exceeds.
PRIOR_LOG_SD = 0.05
PRIOR_FREEDOM = 1
# A trial that is better than the best with a probability outside of this band is decided.
UNDECIDED = (0.05, 0.95)


@dataclass(frozen=True)
class Standing:
    """A trial in the race: the mean of its `runs` that count, and how often it was `tried`."""

    mean: float
    runs: int
    tried: int


@dataclass(frozen=True)
class Belief:
    """What is believed of a trial's true value: a normal distribution."""

    mean: float
    variance: float


def run_log_sd(groups: Sequence[Sequence[float]]) -> float:
    """The standard deviation of a run: pooled over `groups` of runs of one thing in one state.

    Together with a guess (`PRIOR_LOG_SD`) that counts as one degree of freedom, since at the
    beginning there are few runs: the mean of a scaled inverse chi-squared posterior without its
    correction (A. Gelman and others, "Bayesian Data Analysis", 3rd edition, section 2.6).
    """
    squares, freedom = PRIOR_FREEDOM * PRIOR_LOG_SD**2, float(PRIOR_FREEDOM)
    for group in groups:
        middle = fmean(group)
        squares += sum((value - middle) ** 2 for value in group)
        freedom += len(group) - 1
    return math.sqrt(squares / freedom)


def spread_variance(standings: Sequence[Standing], run_variance: float) -> float:
    """The variance of the true values of trials around their median; 0 where they are all alike.

    From the better half alone: how far bad configurations fall behind says nothing of how far
    apart good ones are. The mean square of deviations, less what noise adds to it, but at least its
    standard error: that noise explains everything is not known from a few trials, and an estimate
    of 0 would end the race (Y. Chung and others, "A nondegenerate penalized likelihood estimator
    for variance parameters in multilevel models", Psychometrika 78, 2013, is as far from 0).
    """
    middle = median(standing.mean for standing in standings)
    better = [standing for standing in standings if standing.mean > middle]
    if not better:
        return 0.0
    noise = fmean(run_variance / standing.runs for standing in better)
    seen = fmean((standing.mean - middle) ** 2 for standing in better)
    # A mean of m squares of normal values of this variance has this standard deviation.
    return max(seen - noise, noise * math.sqrt(2.0 / len(better)))


class Race:
    """The trials that may be the best, by number, seen with the noise of a run."""

    def __init__(self, standings: Mapping[int, Standing], log_sd: float) -> None:
        """`standings` in rising order of numbers; `log_sd` is the standard deviation of a run."""
        self._standings = dict(standings)
        self._run_variance = log_sd**2
        self._middle, self._spread = 0.0, 0.0
        if self._standings:
            known = list(self._standings.values())
            self._middle = median(standing.mean for standing in known)
            self._spread = spread_variance(known, self._run_variance)
        self.beliefs = {number: self._belief(s) for number, s in self._standings.items()}

    def _belief(self, standing: Standing) -> Belief:
        if len(self._standings) == 1:
            return Belief(standing.mean, self._run_variance / standing.runs)
        if self._spread == 0.0:
            return Belief(self._middle, 0.0)
        precision = 1.0 / self._spread + standing.runs / self._run_variance
        weight = standing.runs / self._run_variance / precision
        return Belief(self._middle + weight * (standing.mean - self._middle), 1.0 / precision)

    def best(self) -> int | None:
        """The trial with the best posterior; of equals the one with the best mean, the earliest."""
        return self._best_of(self._standings)

    def _best_of(self, numbers: Mapping[int, object]) -> int | None:
        def rank(number: int) -> tuple[float, float, int]:
            return self.beliefs[number].mean, self._standings[number].mean, -number

        return max(numbers, key=rank, default=None)

    def repeat(self, runs_max: int) -> int | None:
        """The trial of which another run gains most; None where a new trial gains more.

        A trial has at most `runs_max` runs that count, the best one twice as many, because every
        other one is compared with it. With `runs_max` 1 none is repeated.
        """
        best = self.best()
        if best is None or runs_max < 2 or len(self._standings) < 2 or self._spread == 0.0:
            return None
        others = {number: None for number in self._standings if number != best}
        second = self._best_of(others)
        wanted: tuple[float, int] | None = None
        for number, standing in self._standings.items():
            limit = 2 * runs_max if number == best else runs_max
            rival = second if number == best else best
            if rival is None or standing.runs >= limit or standing.tried > limit:
                continue
            gain = self._gain(number, rival) if self._undecided(number, rival) else 0.0
            if gain > 0.0 and (wanted is None or gain > wanted[0]):
                wanted = gain, number
        worth = wanted is not None and wanted[0] > self._gain_of_new(best)
        return wanted[1] if wanted is not None and worth else None

    def _undecided(self, number: int, rival: int) -> bool:
        own, other = self.beliefs[number], self.beliefs[rival]
        deviation = math.sqrt(own.variance + other.variance)
        low, high = UNDECIDED
        return low <= float(special.ndtr((own.mean - other.mean) / deviation)) <= high

    def _gain(self, number: int, rival: int) -> float:
        """The knowledge gradient of one more run of `number`, with `rival` the best of the rest."""
        own = self.beliefs[number]
        lead = -abs(own.mean - self.beliefs[rival].mean)
        return _expected_improvement(lead, self._moves(own.variance))

    def _gain_of_new(self, best: int) -> float:
        """The same of the first run of a trial that is drawn like those so far."""
        lead = self._middle - self.beliefs[best].mean
        return _expected_improvement(lead, self._moves(self._spread))

    def _moves(self, variance: float) -> float:
        """By how much (standard deviation) one run moves the mean of a belief of `variance`."""
        return variance / math.sqrt(variance + self._run_variance)


def _expected_improvement(lead: float, deviation: float) -> float:
    """The mean of max(0, x) for a normal x of mean `lead` and standard deviation `deviation`."""
    z = lead / deviation
    density = math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
    return deviation * (z * float(special.ndtr(z)) + density)
