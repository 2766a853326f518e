"""A ratio that may be looked at after every pair: a confidence sequence for symmetric pairs.

A fair coin decides which side of a pair runs first. If the sides do not differ, they are then
exchangeable given everything that happened before. So the logarithm of their ratio is symmetric
about 0, whatever drift, autocorrelation, order effect or heavy tail the machine has (R. A. Fisher,
"The Design of Experiments", 1935, section 21). This file assumes nothing else, and estimates no
variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from lsmtune.stats.intervals import RatioInterval, exp_or_inf, log_ratios_of

# The slopes of the bets. A bet of slope s wins most if effect / variance of the log ratios is about
# s. This grid serves pairs whose ratios scatter by 30 % as well as pairs that scatter by 0.3 %.
_SLOPES = 2.0 ** np.arange(1, 11)

# The share of the winnings that each bet stakes. The rest is held back, so that a pair with one
# outlier costs no more than five good pairs win (I. Waudby-Smith, A. Ramdas, JRSS B 86, 2024,
# section 4).
#
# Slopes and stake were chosen by simulations of 6 to 30 pairs, with a standard deviation of 0.003
# to 0.3 and effects of 0.3 to 5 standard deviations. The noise was normal, t2, t3, or made 7 % of
# the runs 1.6 times slower. With such slow runs, a difference of 5 % at 3 % noise is proved in 58 %
# of the proofs if nothing is held back, and in 93 % with this stake; on normal pairs the power is
# the same. Holding back more than 0.05 costs one more pair if the effect is large. Other steps and
# ends of the slopes change the power by less than 0.05.
_STAKE = 0.95

# An interval of 8 to 30 pairs reaches 3.6 to 4.2 standard errors of the mean to either side.
_USUAL_WIDTH = 4.5
# The precision of a bound, in logs.
_PRECISION = 1e-10

_PAIRS_AT_ONCE = 1000


def pairs_at_least(confidence: float) -> int:
    """The least number of pairs after which an interval at `confidence` can be bounded.

    After n pairs the evidence for "more" is below 1.95^n, even if all n ratios are above 1. It has
    to reach 2 / (1 - confidence). Raises ValueError for a confidence outside the open interval from
    0 to 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, found {confidence}")
    most = math.log(2.0 / (1.0 - confidence)) / math.log1p(_STAKE)
    return 1 + math.floor(most + 1e-9)


def evidence_of_more(log_ratios: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    """The evidence for "more than `theta`" after each pair of many series at once.

    It is what a bet against "the logs are symmetric about `theta`" has won. Under symmetry given
    the past, each term 1 + c tanh(s (x - theta)) has mean 1. The running product of these terms is
    therefore a test martingale for any slope s and stake c <= 1 (V. H. de la Pena, Annals of
    Probability 27, 1999; A. Ramdas, J. Ruf, M. Larsson, W. Koolen, arXiv:2009.03167, 2020). So is
    the mean of such products over slopes and both signs. By Ville's inequality (J. Ville, "Etude
    critique de la notion de collectif", 1939), the probability that this mean ever reaches
    1 / alpha is at most alpha.

    `log_ratios` and the result have the shape (..., n): one series of n <= 1,000 pairs along the
    last axis. The lower bound of `sequential_ratio` is above `theta` when this evidence is above
    2 / (1 - confidence). Raises ValueError for longer series, whose evidence may exceed a float.
    """
    above = np.asarray(log_ratios, dtype=np.float64) - theta
    if above.shape[-1] > _PAIRS_AT_ONCE:
        raise ValueError(f"at most {_PAIRS_AT_ONCE} pairs, found {above.shape[-1]}")
    total = np.zeros_like(above)
    for slope in _SLOPES:
        total += np.cumprod(1.0 + _STAKE * np.tanh(slope * above), axis=-1)
    return total / len(_SLOPES)


def sequential_ratio(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float = 0.95
) -> RatioInterval:
    """Candidate over baseline, with an interval that holds at every look at the growing pairs.

    `ratio` is the geometric mean of the pairs' ratios. The interval is a confidence sequence: with
    probability `confidence`, all intervals of one growing series hold the true ratio together. So
    it costs nothing to look after every pair, to stop at any time, or to add pairs later. The
    interval holds the ratios against which neither one-sided evidence has reached
    2 / (1 - confidence), and the mean. It does not depend on the order of the pairs. With fewer
    than `pairs_at_least(confidence)` pairs, `low` is 0 and `high` is infinite. A bound beyond the
    range of floats is 0 or infinite, too.

    Raises ValueError as `paired_ratio` does.
    """
    least = pairs_at_least(confidence)
    logs = log_ratios_of(baseline, candidate)
    low, high = -math.inf, math.inf
    if len(logs) >= least:
        # Each bound takes half of the error.
        mark = math.log(2.0 / (1.0 - confidence))
        low, high = _lower_bound(logs, mark), -_lower_bound(-logs, mark)
    return RatioInterval(
        ratio=exp_or_inf(float(np.mean(logs))),
        low=exp_or_inf(low),
        high=exp_or_inf(high),
        pairs=len(logs),
    )


def _lower_bound(logs: NDArray[np.float64], mark: float) -> float:
    """The lower bound: the theta at which the log evidence for "more than theta" equals `mark`.

    The evidence falls as theta rises, so there is exactly one such theta. It usually lies below the
    mean. Outliers can pull the mean below it, because they move the mean more than the bound. Then
    the mean is the bound: the interval becomes wider, and still contains the mean.
    """

    def excess(theta: float) -> float:
        return _log_one_sided(logs - theta) - mark

    above = float(np.mean(logs))
    if excess(above) >= 0.0:
        return above
    # Begin about where the bound usually is, and go further down until the evidence is enough. Far
    # below all logs it always is, because there are `pairs_at_least` pairs.
    step = _USUAL_WIDTH * float(np.std(logs)) / math.sqrt(len(logs)) + 1.0 / float(_SLOPES[-2])
    below = above - step
    while excess(below) < 0.0:
        step *= 4.0
        above, below = below, below - step
    return float(scipy.optimize.brentq(excess, below, above, xtol=_PRECISION))


def _log_one_sided(values: NDArray[np.float64]) -> float:
    """The log of the mean, over slopes, of the product of 1 + stake * tanh(slope * value)."""
    gains = np.log1p(_STAKE * np.tanh(np.multiply.outer(_SLOPES, values)))
    return float(np.logaddexp.reduce(gains.sum(axis=1)) - math.log(len(_SLOPES)))
