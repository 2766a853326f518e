"""Ways to make the ratio of a pair vary less, and what that is worth: pure functions of arrays.

Each of them treats both sides alike. Swapping the sides of a pair turns the sign of its log ratio,
before and after, so that what was symmetric about "no difference" still is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

_RESAMPLES = 2000


@dataclass(frozen=True)
class Controlled:
    """Log ratios less what a covariate explains of them: `log_ratios[k] - slopes[k] * c[k]`."""

    log_ratios: NDArray[np.float64]
    slopes: NDArray[np.float64]


@dataclass(frozen=True)
class Cost:
    """The variance of a log ratio that a second of machine time buys, with its interval.

    Halving `variance_s` halves the time that a proof takes. In seconds, since the variance of logs
    has no unit.
    """

    variance_s: float
    low: float
    high: float
    confidence: float
    pairs: int


def control_variate(
    log_ratios: Sequence[float], differences: Sequence[float], *, running: bool = False
) -> Controlled:
    """Subtract from each log ratio what the difference of a covariate between both runs predicts.

    `differences` are the covariate of the candidate's run less that of the baseline's (of stolen
    time, for example), one for each of the n log ratios. The covariate must be one that the
    candidate does not change: its own effect on it would be subtracted as well. The slope is that
    of the regression through the origin, sum(x c) / sum(c^2) (control variates: J. M. Hammersley,
    D. C. Handscomb, "Monte Carlo Methods", 1964, section 5.5), which swapping the sides of any pair
    leaves as it is.

    `running` takes the slope of each pair from those before it only, 0 for the first: the adjusted
    series may then be looked at after every pair (`stats.sequential`).

    Raises ValueError for other shapes and values that are not finite.
    """
    logs, covariates = _columns(log_ratios, differences)
    products, squares = np.cumsum(logs * covariates), np.cumsum(covariates**2)
    if running:
        products, squares = (
            np.concatenate([[0.0], x[:-1]])[: len(logs)] for x in (products, squares)
        )
    elif len(logs):
        products, squares = (np.full(len(logs), x[-1]) for x in (products, squares))
    slopes = np.divide(products, squares, out=np.zeros_like(logs), where=squares > 0.0)
    return Controlled(logs - slopes * covariates, slopes)


def undisturbed(
    baseline_steal_share: Sequence[float],
    candidate_steal_share: Sequence[float],
    share_max: float,
) -> NDArray[np.bool_]:
    """Which slice pairs to keep: those of which neither side had more than `share_max` stolen.

    The shares are of the slice's elapsed time, one for each slice of either side; slice k of both
    ran one after the other. A pair goes or stays as a whole, whichever side was robbed, so that
    trimming cannot favour one. Nothing is left when everything was disturbed.

    Raises ValueError for other shapes, shares that are negative or not finite, and a `share_max`
    that is negative.
    """
    if not share_max >= 0.0:
        raise ValueError(f"the largest share must not be negative, found {share_max}")
    sides = _columns(baseline_steal_share, candidate_steal_share)
    worst = np.maximum(*sides)
    if (np.minimum(*sides) < 0.0).any():
        raise ValueError(f"a share must not be negative, found {np.minimum(*sides).min()}")
    keep: NDArray[np.bool_] = worst <= share_max
    return keep


def machine_cost(
    log_ratios: Sequence[float],
    seconds: Sequence[float],
    random: np.random.Generator,
    confidence: float = 0.95,
) -> Cost:
    """The variance of one pair's log ratio times the mean seconds that a pair takes.

    By that product estimators of different cost compare: the time to a wanted variance is
    proportional to it (P. W. Glynn, W. Whitt, "The asymptotic efficiency of simulation estimators",
    Operations Research 40, 1992). `log_ratios` are the estimates of n >= 3 pairs as independent as
    those of a proof, however each was got; `seconds` what each took, all of it. The interval is the
    bias-corrected and accelerated bootstrap (B. Efron, JASA 82, 1987) of 2,000 resamples of pairs;
    with fewer than about 20 it is too narrow.

    Raises ValueError for other shapes, fewer pairs, values that are not finite, seconds that are
    not above zero, and a confidence outside the open interval from 0 to 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, found {confidence}")
    logs, times = _columns(log_ratios, seconds)
    pairs = len(logs)
    if pairs < 3:
        raise ValueError(f"a variance with its interval needs at least 3 pairs, found {pairs}")
    if (times <= 0.0).any():
        raise ValueError(f"seconds must be above zero, found {times.min()}")
    found = float(_cost(logs, times))
    picks = random.integers(pairs, size=(_RESAMPLES, pairs))
    left_out = np.array([np.delete(np.arange(pairs), index) for index in range(pairs)])
    low, high = _bca(
        found, _cost(logs[picks], times[picks]), _cost(logs[left_out], times[left_out]), confidence
    )
    return Cost(found, low, high, confidence, pairs)


def _cost(logs: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance times mean seconds along the last axis."""
    cost: NDArray[np.float64] = np.var(logs, axis=-1, ddof=1) * np.mean(times, axis=-1)
    return cost


def _bca(
    found: float, resampled: NDArray[np.float64], jackknifed: NDArray[np.float64], confidence: float
) -> tuple[float, float]:
    """Efron's interval of a statistic from its resamples and its leave-one-out values."""
    ties = 0.5 * np.mean(resampled == found)
    bias = special.ndtri(np.clip(np.mean(resampled < found) + ties, 1e-6, 1.0 - 1e-6))
    around = jackknifed.mean() - jackknifed
    spread = float(np.sum(around**2))
    acceleration = float(np.sum(around**3)) / (6.0 * spread**1.5) if spread > 0.0 else 0.0
    tails = bias + special.ndtri(np.array([1.0 - confidence, 1.0 + confidence]) / 2.0)
    shares = special.ndtr(bias + tails / (1.0 - acceleration * tails))
    low, high = np.quantile(resampled, shares)
    return float(low), float(high)


def _columns(
    one: Sequence[float], other: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both as arrays of the same length, checked."""
    first, second = (np.asarray(values, dtype=np.float64) for values in (one, other))
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"two series of one length, found shapes {first.shape}, {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("values must be finite")
    return first, second
