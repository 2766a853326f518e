"""Single values that do not belong to their sample: pure functions of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from lsmtune.stats.holm import holm_adjusted

GRUBBS_VALUES_MIN = 3


@dataclass(frozen=True)
class Grubbs:
    """The value furthest from the mean, in standard deviations of the sample, and its p-value."""

    index: int
    deviations: float
    p_value: float


@dataclass(frozen=True)
class Outlier:
    """Value `index` of sample `sample`; `p_value` is adjusted for all samples that were tested."""

    sample: int
    index: int
    deviations: float
    p_value: float


def grubbs(values: Sequence[float]) -> Grubbs:
    """Grubbs's two-sided test of whether the most distant of n >= 3 values is from elsewhere.

    With G the distance from the mean in standard deviations, the p-value is that of Student's t
    with n - 2 degrees of freedom at t^2 = n (n - 2) G^2 / ((n - 1)^2 - n G^2), times 2 n (F. E.
    Grubbs, "Procedures for detecting outlying observations in samples", Technometrics 11, 1969;
    NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17.1). Without an outlier, of a normal
    sample, it is at most alpha with probability alpha at most. It is for one outlier: two of the
    same size hide each other.

    Raises ValueError for another shape, fewer values, and one that is not finite.
    """
    found = np.asarray(values, dtype=np.float64)
    n = len(found) if found.ndim == 1 else 0
    if n < GRUBBS_VALUES_MIN:
        raise ValueError(f"needs at least {GRUBBS_VALUES_MIN} values, found shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("values must be finite")
    distances = np.abs(found - found.mean())
    index = int(np.argmax(distances))
    spread = float(np.std(found, ddof=1))
    if spread == 0.0:
        return Grubbs(index, 0.0, 1.0)
    deviations = float(distances[index]) / spread
    left = (n - 1) ** 2 - n * deviations**2
    if left <= 0.0:  # all other values are the same
        return Grubbs(index, deviations, 0.0)
    t = math.sqrt(n * (n - 2) * deviations**2 / left)
    return Grubbs(index, deviations, min(1.0, 2 * n * float(special.stdtr(n - 2, -t))))


def outliers(samples: Sequence[Sequence[float]], alpha: float = 0.05) -> list[Outlier]:
    """The outliers among many samples, at most one of each, the surest first.

    `grubbs` of every sample of at least three values, corrected by Holm's procedure, so that with
    normal samples without outliers any is called with probability `alpha` at most.

    Raises ValueError for a value that is not finite and an alpha outside the open interval 0 to 1.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, found {alpha}")
    tested = [number for number, values in enumerate(samples) if len(values) >= GRUBBS_VALUES_MIN]
    found = [grubbs(samples[number]) for number in tested]
    adjusted = holm_adjusted([each.p_value for each in found])
    called = [
        Outlier(number, each.index, each.deviations, float(p_value))
        for number, each, p_value in zip(tested, found, adjusted, strict=True)
        if p_value <= alpha
    ]
    return sorted(called, key=lambda outlier: outlier.p_value)
