"""The mean of repeated values with its confidence interval: pure functions of arrays."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special


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
        margin = float(special.stdtrit(runs - 1, 0.5 + confidence / 2.0)) * error
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
