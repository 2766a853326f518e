"""Ranks of items that were measured in the same rounds, and outliers: pure functions.

Items (the teams of a contest) are measured in the same rounds of one or more tables (its phases).
Two items are compared within rounds, on the logarithm of their ratio, which is taken as a normal
sample of its mean: what the runs of a round share cancels. For the mean of logs is what is
compared, "better" means the larger geometric mean; of two items that differ by chance alone the
difference is symmetric, whatever each is distributed like.

All ordered pairs of all tables are tested at once, so that one statement holds for everything that
follows: with probability `confidence` at least, no item that is called better is not. Intervals
for ranks by counting such pairs are those of M. Mogstad, J. P. Romano, A. M. Shaikh, D. Wilhelm,
"Inference for Ranks with Applications to Mobility across Neighbourhoods and Academic Achievement
across Countries", Review of Economic Studies 91, 2024; they resample for large samples, where the
few rounds of a contest need Student's t and Holm's correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from lsmtune.stats.intervals import holm_adjusted, logs_of

Matrix = NDArray[np.float64]
Relation = NDArray[np.bool_]


@dataclass(frozen=True)
class RankInterval:
    """The ranks, from 1, that an item may have."""

    low: int
    high: int


def ranks(values: Sequence[float], *, higher_is_better: bool = True) -> list[int]:
    """1 + the number of values that are better; equal values share the best of their ranks."""
    losses = -np.asarray(values) if higher_is_better else np.asarray(values)
    return [int(better) + 1 for better in np.searchsorted(np.sort(losses), losses)]


def adjusted_p_values(
    tables: Sequence[Matrix], *, higher_is_better: bool = True, resolution: float = 0.0
) -> list[NDArray[np.float64]]:
    """For each table, of shape (rounds, items), a matrix: how sure it is that i is better than j.

    Element [i, j] is the p-value of "i is not better than j", by Student's t test of the paired
    logarithms, one-sided, adjusted by Holm's procedure for all pairs of all tables; the diagonal is
    1. With one round nothing is known, and all are 1. Each direction of a pair is a test of its
    own, so that calling the wrong one of two better is an error that is counted, too.

    Logarithms that were rounded to multiples of `resolution` may tie, and then seem not to scatter.
    A p-value below a half is an upper bound of those of all values that are rounded to these.

    Raises ValueError for another shape, and for a value that is not a finite number above zero.
    """
    raw = [_p_values(_logs(table, higher_is_better), resolution) for table in tables]
    off_diagonal = [~np.eye(len(each), dtype=bool) for each in raw]
    pooled = [each[chosen] for each, chosen in zip(raw, off_diagonal, strict=True)]
    adjusted = holm_adjusted(np.concatenate([np.empty(0), *pooled]))
    matrices, start = [], 0
    for each, chosen in zip(raw, off_diagonal, strict=True):
        matrix = np.ones_like(each)
        matrix[chosen] = adjusted[start : start + int(chosen.sum())]
        start += int(chosen.sum())
        matrices.append(matrix)
    return matrices


def proved_better(p_values: Matrix, confidence: float = 0.95) -> Relation:
    """[i, j] is true where i is better than j: a strict partial order.

    Where i is better than j, and j than k, then i is better than k, which is added where the test
    of that pair alone did not say so. `p_values` is a matrix of `adjusted_p_values`.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, found {confidence}")
    better: Relation = p_values <= 1.0 - confidence
    for middle in range(len(better)):
        better = better | (better[:, [middle]] & better[middle])
    return better


def rank_intervals(better: Relation) -> list[RankInterval]:
    """Of each item: 1 + how many are better, to the number of items less how many are worse."""
    items = len(better)
    return [
        RankInterval(1 + int(better[:, item].sum()), items - int(better[item, :].sum()))
        for item in range(items)
    ]


def better_in_total(betters: Sequence[Relation]) -> Relation:
    """[i, j] is true where i's sum of ranks over all tables is smaller, whatever is not known.

    `betters` has what `proved_better` says of each table. The largest possible difference of two
    items' ranks in one table follows from who may stand between them; i is better in total where
    the sum of these is below zero. It holds with the confidence of `betters`.
    """
    return sum((_rank_difference_max(better) for better in betters), start=np.zeros(1)) < 0


def _rank_difference_max(better: Relation) -> Matrix:
    """[i, j] is the most by which the rank of i may exceed that of j, in one table."""
    items = len(better)
    most = np.zeros((items, items))
    for i in range(items):
        for j in range(items):
            if better[i, j]:
                between = better[i, :] & better[:, j]
                most[i, j] = -1.0 - between.sum()
            elif i != j:
                # j first, then all that need not come before j nor after i, then i.
                between = ~better[:, j] & ~better[i, :]
                between[[i, j]] = False
                most[i, j] = 1.0 + between.sum()
    return most


def _logs(table: Matrix, higher_is_better: bool) -> Matrix:
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"a table has rounds and items, found shape {values.shape}")
    return logs_of(values) if higher_is_better else -logs_of(values)


def _p_values(logs: Matrix, resolution: float) -> Matrix:
    """[i, j]: of "the mean of i is at most that of j", one-sided."""
    rounds, items = logs.shape
    if rounds < 2:
        return np.ones((items, items))
    differences = logs[:, :, None] - logs[:, None, :]
    # Each difference may be off by the resolution: so may their mean, and the scatter by more.
    means = differences.mean(axis=0) - resolution
    scatter = differences.std(axis=0, ddof=1) + resolution * math.sqrt(rounds / (rounds - 1))
    errors = scatter / math.sqrt(rounds)
    # Pairs that differ by the same ratio in every round are sure; those that do not differ are not.
    certain = np.where(means > 0.0, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        tested = scipy.special.stdtr(rounds - 1, -means / errors)
    p_values: Matrix = np.where(errors > 0.0, tested, certain)
    return p_values


# --- outliers

GRUBBS_VALUES_MIN = 3


@dataclass(frozen=True)
class Outlier:
    """Value `index` of a sample: that furthest from the mean, in standard deviations of the sample.

    Of many samples `sample` is the number, and `p_value` is adjusted for all that were tested.
    """

    index: int
    deviations: float
    p_value: float
    sample: int = 0


def grubbs(values: Sequence[float], resolution: float = 0.0) -> Outlier:
    """Grubbs's two-sided test of whether the most distant of n >= 3 values is from elsewhere.

    Of the distance from the mean of the others, divided by its standard error as these scatter, the
    p-value is that of Student's t with n - 2 degrees of freedom, times 2 n. With G the distance
    from the mean of all in standard deviations, its square is n (n - 2) G^2 / ((n - 1)^2 - n G^2)
    (F. E. Grubbs, "Procedures for detecting outlying observations in samples", Technometrics 11,
    1969; NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17.1). Without an outlier, of a
    normal sample, it is at most alpha with probability alpha at most. It is for one outlier: two of
    the same size hide each other.

    Values that were rounded to multiples of `resolution` may tie, and then seem not to scatter. The
    p-value is an upper bound of that of all values that are rounded to these.

    Raises ValueError for another shape, fewer values, and one that is not finite.
    """
    row = np.asarray(values, dtype=np.float64)
    n = len(row) if row.ndim == 1 else 0
    if n < GRUBBS_VALUES_MIN:
        raise ValueError(f"needs at least {GRUBBS_VALUES_MIN} values, found shape {row.shape}")
    if not np.isfinite(row).all():
        raise ValueError("values must be finite")
    distances = np.abs(row - row.mean())
    index = int(np.argmax(distances))
    spread = float(np.std(row, ddof=1))
    if spread == 0.0:
        return Outlier(index, 0.0, 1.0)
    deviations = float(distances[index]) / spread
    others = np.delete(row, index)
    # Each value may be half of the resolution off: in length, n - 1 of them by its root.
    apart = abs(float(row[index] - others.mean())) - resolution
    scatter = float(np.std(others, ddof=1)) + resolution / 2 * math.sqrt((n - 1) / (n - 2))
    if apart <= 0.0:
        return Outlier(index, deviations, 1.0)
    if scatter == 0.0:  # all other values are the same
        return Outlier(index, deviations, 0.0)
    t = apart / (scatter * math.sqrt(n / (n - 1)))
    return Outlier(index, deviations, min(1.0, 2 * n * float(scipy.special.stdtr(n - 2, -t))))


def outliers(
    samples: Sequence[Sequence[float]], alpha: float = 0.05, resolution: float = 0.0
) -> list[Outlier]:
    """The outliers among many samples, at most one of each, the surest first.

    `grubbs` of every sample of at least three values, corrected by Holm's procedure, so that with
    normal samples without outliers, rounded to `resolution`, any is called with probability `alpha`
    at most.

    Raises ValueError for a value that is not finite and an alpha outside the open interval 0 to 1.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, found {alpha}")
    tested = [number for number, values in enumerate(samples) if len(values) >= GRUBBS_VALUES_MIN]
    tests = [grubbs(samples[number], resolution) for number in tested]
    adjusted = holm_adjusted([each.p_value for each in tests])
    called = [
        replace(each, p_value=float(p_value), sample=number)
        for number, each, p_value in zip(tested, tests, adjusted, strict=True)
        if p_value <= alpha
    ]
    return sorted(called, key=lambda outlier: outlier.p_value)
