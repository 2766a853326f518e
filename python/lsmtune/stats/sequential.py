"""A ratio that may be looked at after every pair: a confidence sequence for symmetric pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from lsmtune.stats.paired import RatioInterval, log_ratios_of

# Scales of a log ratio at which evidence is sought: from 1 (a factor of e) to a thousandth.
_SLOPES = 2.0 ** np.arange(0, 11)


def pairs_at_least(confidence: float) -> int:
    """The least number of pairs after which an interval at `confidence` can be bounded.

    The evidence against any ratio is at most 2^(n - 1) after n pairs (all of them on one side of
    it), and has to reach 1 / (1 - confidence).
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, found {confidence}")
    return 2 + math.floor(math.log2(1.0 / (1.0 - confidence)) + 1e-9)


def evidence(log_ratios: Sequence[float], theta: float = 0.0) -> float:
    """The e-value against "the logs are symmetric about `theta`": how much a bet on it has won.

    `log_ratios` is one-dimensional, in any order. Under symmetry given the past, each
    1 + tanh(s (x - theta)) has mean 1, so that their running product is a test martingale for any
    slope s (V. H. de la Pena, Annals of Probability 27, 1999; A. Ramdas, J. Ruf, M. Larsson, W.
    Koolen, arXiv:2009.03167, 2020), and so is the mean of such products over slopes and both
    signs. By Ville's inequality it ever reaches 1 / alpha with probability at most alpha.
    """
    return float(np.exp(_log_evidence(np.asarray(log_ratios, dtype=np.float64), theta)))


def sequential_ratio(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float = 0.95
) -> RatioInterval:
    """Candidate over baseline, with an interval that holds at every look at the growing pairs.

    The interval is a confidence sequence: all ratios against which the `evidence` never reached
    1 / (1 - confidence) are in it. `low` is 0 and `high` infinite while there are fewer than
    `pairs_at_least(confidence)` pairs. Raises ValueError as `paired_ratio` does.
    """
    least = pairs_at_least(confidence)
    logs = log_ratios_of(baseline, candidate)
    mean = float(np.mean(logs))
    low, high = -math.inf, math.inf
    if len(logs) >= least:
        low, high = _bounds(logs, math.log(1.0 / (1.0 - confidence)))
    return RatioInterval(
        ratio=math.exp(mean),
        low=math.exp(low),
        high=math.exp(high),
        confidence=confidence,
        pairs=len(logs),
    )


def _bounds(
    logs: np.ndarray[tuple[int], np.dtype[np.float64]], needed: float
) -> tuple[float, float]:
    """The two one-sided bounds, each at half of the error: log evidence of `needed` + log 2.

    Evidence for "above theta" falls as theta rises, so each bound is where it passes the mark.
    Skewed values can put the lower bound above the upper one; what lies between them is refuted
    from both sides, and the interval is then said as wide as that.
    """
    mark = needed + math.log(2.0)
    reach = 2.0 * (float(np.ptp(logs)) + 20.0)
    low = optimize.brentq(
        lambda theta: _log_one_sided(logs - theta) - mark, float(logs.min()) - reach, logs.max()
    )
    high = optimize.brentq(
        lambda theta: _log_one_sided(theta - logs) - mark, logs.min(), float(logs.max()) + reach
    )
    return min(low, high), max(low, high)


def _log_evidence(logs: np.ndarray[tuple[int], np.dtype[np.float64]], theta: float) -> float:
    sides = _log_one_sided(logs - theta), _log_one_sided(theta - logs)
    return float(np.logaddexp(*sides) - math.log(2.0))


def _log_one_sided(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The log of the mean, over slopes, of the product of 1 + tanh(slope * value)."""
    # 1 + tanh(y) = 2 / (1 + exp(-2 y)), written so that it neither overflows nor cancels.
    products = np.sum(math.log(2.0) - np.logaddexp(0.0, -2.0 * np.outer(_SLOPES, values)), axis=1)
    return float(np.logaddexp.reduce(products) - math.log(len(_SLOPES)))
