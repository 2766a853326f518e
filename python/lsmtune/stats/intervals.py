"""Means, and ratios of paired values, with their intervals; Holm's correction: pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray


@dataclass(frozen=True)
class MeanInterval:
    """Mean and median of `runs` values; `low` to `high` bounds the mean at `confidence`.

    The bounds are None where one value tells nothing of how much they scatter.
    """

    runs: int
    mean: float
    median: float
    low: float | None
    high: float | None
    confidence: float


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> MeanInterval:
    """The mean of `values`, with Student's t interval of len(values) - 1 degrees of freedom.

    For values that are independent and about normal (Student, "The probable error of a mean",
    Biometrika 6, 1908); of as few as three it is wide, and rightly so. Raises ValueError without
    values, for one that is not finite, and for a confidence that is not between 0 and 1.
    """
    _check(values, confidence)
    runs, mean = len(values), statistics.fmean(values)
    low = high = None
    if runs > 1:
        error = statistics.stdev(values) / math.sqrt(runs)
        margin = float(scipy.special.stdtrit(runs - 1, 0.5 + confidence / 2.0)) * error
        low, high = mean - margin, mean + margin
    return MeanInterval(runs, mean, statistics.median(values), low, high, confidence)


def geometric_mean_interval(values: Sequence[float], confidence: float = 0.95) -> MeanInterval:
    """The geometric mean of `values`, with the t interval of their logarithms turned back.

    For rates and times, which are above zero and scatter by factors: the bounds are above zero too,
    and the ratio of two such means is the mean ratio of their pairs. Raises ValueError as
    `mean_interval` does, and for a value that is not above zero.
    """
    _check(values, confidence)
    bad = [value for value in values if value <= 0.0]
    if bad:
        raise ValueError(f"values must be above zero, found {bad[0]}")
    logs = mean_interval([math.log(value) for value in values], confidence)
    low, high = (None if end is None else math.exp(end) for end in (logs.low, logs.high))
    median = statistics.median(values)
    return MeanInterval(logs.runs, math.exp(logs.mean), median, low, high, confidence)


def _check(values: Sequence[float], confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, found {confidence}")
    if not values:
        raise ValueError("a mean needs at least one value")
    bad = [value for value in values if not math.isfinite(value)]
    if bad:
        raise ValueError(f"values must be finite, found {bad[0]}")


# --- ratios of pairs

MINIMUM_PAIRS = 2


@dataclass(frozen=True)
class RatioInterval:
    """A ratio and the interval that bounds it at `confidence`; `low <= ratio <= high`."""

    ratio: float
    low: float
    high: float
    confidence: float
    pairs: int

    def excludes_one(self) -> bool:
        """Whether the interval says that the two sides differ."""
        return self.low > 1.0 or self.high < 1.0


def paired_ratio(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float = 0.95
) -> RatioInterval:
    """Candidate over baseline: the geometric mean of the pairs' ratios and its interval.

    `baseline` and `candidate` are one-dimensional, of the same length n >= 2; element i of both
    comes from pair i. The logarithms of the ratios are taken as a normal sample, and the interval
    is Student's t interval of their mean with n - 1 degrees of freedom (Student, "The probable
    error of a mean", Biometrika 6, 1908), turned back into a ratio. What both runs of a pair
    share (the state of the machine, the seed) cancels in the ratio.

    When all ratios are the same, the interval is that one point.

    Raises ValueError for another shape, fewer than two pairs, a value that is not a finite
    positive number, or a confidence outside the open interval from 0 to 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, found {confidence}")
    log_ratios = log_ratios_of(baseline, candidate)
    pairs = len(log_ratios)
    mean = float(np.mean(log_ratios))
    standard_error = float(np.std(log_ratios, ddof=1)) / math.sqrt(pairs)
    margin = float(scipy.special.stdtrit(pairs - 1, 0.5 + confidence / 2.0)) * standard_error
    low, ratio, high = (float(x) for x in np.exp([mean - margin, mean, mean + margin]))
    return RatioInterval(ratio=ratio, low=low, high=high, confidence=confidence, pairs=pairs)


def log_ratios_of(
    baseline: Sequence[float], candidate: Sequence[float]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The logarithms of candidate over baseline, checked as `paired_ratio` says."""
    sides = {
        "baseline": np.asarray(baseline, dtype=np.float64),
        "candidate": np.asarray(candidate, dtype=np.float64),
    }
    for name, values in sides.items():
        if values.ndim != 1:
            raise ValueError(f"{name} values must be one-dimensional, found shape {values.shape}")
    if len(baseline) != len(candidate):
        raise ValueError(
            f"a pair has one value on each side, found {len(baseline)} baseline values "
            f"and {len(candidate)} candidate values"
        )
    if len(baseline) < MINIMUM_PAIRS:
        raise ValueError(f"an interval needs at least {MINIMUM_PAIRS} pairs, found {len(baseline)}")
    for name, values in sides.items():
        bad = values[~(np.isfinite(values) & (values > 0.0))]
        if bad.size:
            raise ValueError(f"{name} values must be finite and above zero, found {bad[0]}")
    difference: np.ndarray[tuple[int], np.dtype[np.float64]] = np.log(sides["candidate"]) - np.log(
        sides["baseline"]
    )
    return difference


# --- many tests at once


def holm_adjusted(
    p_values: Sequence[float] | NDArray[np.float64],
) -> NDArray[np.float64]:
    """The adjusted p-values of m tests, in their order, each at least as large as its own.

    Rejecting where the adjusted value is at most alpha makes any wrong rejection among all m tests
    with probability alpha at most, however the tests depend on each other (S. Holm, "A simple
    sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).

    Raises ValueError for another shape, and for a value outside 0 to 1.
    """
    raw = np.asarray(p_values, dtype=np.float64)
    if raw.ndim != 1:
        raise ValueError(f"p-values must be one-dimensional, found shape {raw.shape}")
    if not ((raw >= 0.0) & (raw <= 1.0)).all():
        raise ValueError("p-values must lie between 0 and 1")
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
