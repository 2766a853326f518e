"""The ratio of paired values with its confidence interval: pure functions of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

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
    margin = float(special.stdtrit(pairs - 1, 0.5 + confidence / 2.0)) * standard_error
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
