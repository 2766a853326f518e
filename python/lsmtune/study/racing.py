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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

import numpy as np
import numpy.typing as npt
import scipy

# What the noise of a run is taken for before anything is known, and how many degrees of freedom
# that guess is worth: 5 %, which a quiet machine keeps below and a shared one soon exceeds.
PRIOR_LOG_SD = 0.05
PRIOR_FREEDOM = 1
# A trial that is better than the best with a probability outside of this band is decided.
UNDECIDED = (0.05, 0.95)

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """A trial in the race: the mean of its `runs` that count, and how often it was `tried`.

    `log_odds` is the logarithm of the probability that its guards hold in a proof: a gain that
    breaks one is none.
    """

    mean: float
    runs: int
    tried: int
    log_odds: float = 0.0


Scatter = tuple[float, int]


def scatter_of(group: Sequence[float]) -> Scatter:
    """The sum of squares of `group` about its mean, and its degrees of freedom."""
    if len(group) < 2:
        return 0.0, 0
    middle = fmean(group)
    return sum((value - middle) ** 2 for value in group), len(group) - 1


def pooled(scatters: Iterable[Scatter]) -> Scatter:
    """That of all groups, each about its own mean."""
    known = list(scatters)
    return sum(squares for squares, _ in known), sum(freedom for _, freedom in known)


def run_log_sd(scatters: Iterable[Scatter], in_turns: Iterable[Scatter] = ()) -> float:
    """The standard deviation of a run: pooled over groups of runs of one thing in one state.

    Together with a guess (`PRIOR_LOG_SD`) that counts as one degree of freedom, since at the
    beginning there are few runs: the mean of a scaled inverse chi-squared posterior without its
    correction (A. Gelman and others, "Bayesian Data Analysis", 3rd edition, section 2.6).

    Runs `in_turns` share their moment, and some of them their database: they scatter less than the
    runs of a search do (3.5 and 12 % in a quickstart), so that they can only raise the guess.
    """
    squares, freedom = pooled(in_turns)
    guess = max(PRIOR_LOG_SD, math.sqrt(squares / freedom) if freedom else 0.0)
    squares, freedom = pooled([(PRIOR_FREEDOM * guess**2, PRIOR_FREEDOM), *scatters])
    return math.sqrt(squares / freedom)


def spread_variance(means: FloatArray, runs: FloatArray, run_variance: float) -> float:
    """The variance of the true values of trials around their median; 0 where they are all alike.

    From the better half alone: bad configurations say nothing of how far apart good ones are. The
    mean square of deviations, less what noise adds to it, but at least its standard error: an
    estimate of 0, of which a few trials cannot be sure, would end the race (Y. Chung and others, "A
    nondegenerate penalized likelihood estimator for variance parameters in multilevel models",
    Psychometrika 78, 2013, is as far from 0).
    """
    middle = np.median(means)
    better = means > middle
    if not better.any():
        return 0.0
    noise = float(np.mean(run_variance / runs[better]))
    scatter = float(np.mean((means[better] - middle) ** 2))
    # A mean of m squares of normal values of this variance has this standard deviation.
    return max(scatter - noise, noise * math.sqrt(2.0 / int(better.sum())))


def after_another(
    believed: Mapping[int, NormalDist], values: Mapping[int, float], run_variance: float
) -> dict[int, float]:
    """What is to be believed of trials that were `believed`, each of which ran once more elsewhere.

    `values` are those runs: the mean of each belief is drawn towards its run, the less the surer it
    was. All of them may be faster there, or slower: by what their runs differ from the beliefs on
    average, each weighted by its precision.
    """
    errors = {n: values[n] - believed[n].mean for n in values}
    precision = {n: 1.0 / (believed[n].variance + run_variance) for n in values}
    shift = sum(precision[n] * errors[n] for n in values) / sum(precision.values())
    return {
        n: believed[n].mean + believed[n].variance * precision[n] * (errors[n] - shift)
        for n in values
    }


class Race:
    """The trials that may be the best, by number, seen with the noise of a run.

    All of them are looked at whenever one more is known: as arrays, one place for each trial.
    """

    def __init__(self, standings: Mapping[int, Standing], log_sd: float) -> None:
        """`standings` in rising order of numbers; `log_sd` is the standard deviation of a run."""
        known = list(standings.values())
        self._numbers = np.array(list(standings), dtype=np.intp)
        self._means = np.array([standing.mean for standing in known])
        self._runs = np.array([standing.runs for standing in known], dtype=np.float64)
        self._tried = np.array([standing.tried for standing in known], dtype=np.intp)
        odds = np.array([standing.log_odds for standing in known])
        self._run_variance = log_sd**2
        self._middle, self._spread = 0.0, 0.0
        if known:
            self._middle = float(np.median(self._means))
            self._spread = spread_variance(self._means, self._runs, self._run_variance)
        of_runs = self._runs / self._run_variance
        if len(known) == 1:
            self._believed, self._variances = self._means, 1.0 / of_runs
        elif self._spread == 0.0:
            self._believed = np.full(len(known), self._middle)
            self._variances = np.zeros(len(known))
        else:
            precision = 1.0 / self._spread + of_runs
            shrunk = of_runs / precision * (self._means - self._middle)
            self._believed, self._variances = self._middle + shrunk, 1.0 / precision
        # What is believed of a trial, times the odds that its guards hold in a proof.
        self._worths = self._believed + odds
        # Equals by the mean of their runs, likewise, and then the earliest.
        self._order = np.lexsort((self._numbers, -(self._means + odds), -self._worths))

    def believed(self) -> dict[int, NormalDist]:
        """What is believed of each trial."""
        known = zip(self._numbers, self._believed, np.sqrt(self._variances), strict=True)
        return {int(number): NormalDist(float(m), float(sd)) for number, m, sd in known}

    def ranked(self) -> list[int]:
        """By their posterior, the best first; equals by their mean, and then the earliest."""
        return [int(number) for number in self._numbers[self._order]]

    def repeat(self, runs_max: int) -> int | None:
        """The trial of which another run gains most; None where a new trial gains more.

        A trial has at most `runs_max` runs that count, the best one twice as many, because every
        other one is compared with it. With `runs_max` 1 none is repeated.
        """
        if runs_max < 2 or len(self._numbers) < 2 or self._spread == 0.0:
            return None
        best, second = self._order[:2]
        others = np.full(len(self._numbers), best)
        others[best] = second
        # What a new trial gains: one that is drawn like those so far.
        lead_of_new = np.array([self._middle - self._believed[best]])
        gain_most = max(0.0, float(self._gain(lead_of_new, np.array([self._spread]))[0]))
        limit = np.full(len(self._numbers), runs_max)
        limit[best] = 2 * runs_max
        with np.errstate(invalid="ignore"):  # of two without any odds neither leads
            leads = self._worths - self._worths[others]
            deviations = np.sqrt(self._variances + self._variances[others])
            chances = scipy.special.ndtr(leads / deviations)
            open_ones = (self._runs < limit) & (self._tried <= limit)
            open_ones &= (chances >= UNDECIDED[0]) & (chances <= UNDECIDED[1])
            gains = np.where(open_ones, self._gain(-np.abs(leads), self._variances), -np.inf)
        wanted = int(np.argmax(gains))
        return int(self._numbers[wanted]) if gains[wanted] > gain_most else None

    def _gain(self, leads: FloatArray, variances: FloatArray) -> FloatArray:
        """The knowledge gradient of one run of each trial that leads by so much, mostly below 0.

        It moves the mean of a belief of its variance; the gain is the mean of max(0, x) for that
        normal x.
        """
        deviations = variances / np.sqrt(variances + self._run_variance)
        z = leads / deviations
        densities = np.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
        gains: FloatArray = deviations * (z * scipy.special.ndtr(z) + densities)
        return gains
