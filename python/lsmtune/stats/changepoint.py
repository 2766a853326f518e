"""Where a series of anchors changes its level, because the machine did: pure functions of arrays.

The series is replaced by the normal scores of its ranks, so that one wild run counts as no more
than the largest, and how often a change is seen where there is none does not depend on how the
values are distributed (rank statistics for several changes: A. Lung-Yut-Fong, C. Levy-Leduc, O.
Cappe, Journal de la SFdS 156(4), 2015; scores: B. L. van der Waerden, 1952). The best segments of
each number are found exactly, by dynamic programming (I. E. Auger, C. E. Lawrence, "Algorithms for
the optimal identification of segment neighborhoods", Bulletin of Mathematical Biology 51, 1989),
and their number by a penalty on the logarithm of the residual variance (Y.-C. Yao, "Estimating the
number of change-points via Schwarz' criterion", Statistics and Probability Letters 6, 1988). With
the variance unknown the costs of segments do not add up, so that PELT (R. Killick, P. Fearnhead, I.
A. Eckley, JASA 107, 2012) cannot prune; with a thousand points there is nothing to save.

The library `ruptures` (1.1.10, 2025, alive, on numpy and scipy alone) searches as well, but leaves
the penalty to its caller. What matters here is the rate of false alarms, which comes with a penalty
for exactly these scores; beside it, the search is thirty lines.

The time grows with the square of the number of places where a segment may begin. A series with more
than `_PLACES_MOST` values is cut at every second, third, ... of them only: then it does not grow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

# A level is seen at least three times. Two runs in a row that a neighbour disturbed are no level.
_SEGMENT_LEAST = 3
# Of seven values in any order, one in 18 is split perfectly by chance.
VALUES_LEAST = 8
# No more changes than one in so many values, or the residual variance tells nothing.
_VALUES_PER_CHANGE = 8
_CHANGES_MOST = 12

# The price of a change, in units of -2 log likelihood: 2 log n is Yao's for a place and a level. By
# simulation of 1,000 to 4,000 series without a change of each of 15 lengths from 8 to 300, at most
# 5 in 100 (2 to 5, by length) pass the larger of the two.
_PRICE_LEAST = 9.8
_PRICE_MORE = 0.6

# Of a cut; the price holds for series of up to so many values.
_PLACES_MOST = 300

# Equal values leave no residual, of which there is no logarithm.
_RESIDUAL_LEAST = 1e-9


def segments(log_values: Sequence[float], log_sd: float | None) -> list[range]:
    """The indices of `log_values`, in order of time, cut where their level changes.

    One range where there is no change, and none of an empty series. `log_sd` is the scatter of
    single values as it is known from elsewhere: segments whose medians differ by less are joined,
    because no run was harmed by that. None joins nothing.

    Independent values, however distributed, are cut in at most 5 of 100 series of one length; of
    those that are looked at as they grow, more are cut for a while. A shift by four standard
    deviations that lasts for at least 4 values up to an end of a series of 10 or more, or 8 in the
    midst of 20 or more, is found nearly always; fewer than 8 values are never cut. A slow drift is
    cut into steps. Of more than 300 values only each n-th begins a segment, n being what leaves 300
    places, and a shift has to last for so many more.

    Raises ValueError for another shape, values that are not finite, and a `log_sd` that is
    negative or not finite.
    """
    values = np.asarray(log_values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"a series must be one-dimensional, found shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"values must be finite, found {values[~np.isfinite(values)][0]}")
    if log_sd is not None and not (math.isfinite(log_sd) and log_sd >= 0.0):
        raise ValueError(f"a deviation must be finite and not negative, found {log_sd}")
    cuts = _cuts(values)
    while log_sd is not None and len(cuts) > 2:
        levels = [float(np.median(values[a:b])) for a, b in itertools.pairwise(cuts)]
        steps = [abs(b - a) for a, b in itertools.pairwise(levels)]
        least = int(np.argmin(steps))
        if steps[least] >= log_sd:
            break
        del cuts[least + 1]
    return [range(first, end) for first, end in itertools.pairwise(cuts)]


def _cuts(values: NDArray[np.float64]) -> list[int]:
    """The first index of each segment, and the end of the last."""
    count = len(values)
    if count < VALUES_LEAST or np.ptp(values) == 0.0:
        return [0, count] if count else []
    ordered = np.sort(values)
    below, up_to = np.searchsorted(ordered, values), np.searchsorted(ordered, values, "right")
    # Equal values share the mean of their ranks.
    scores = scipy.special.ndtri((below + up_to + 1) / 2.0 / (count + 1.0))
    most = min(count // _VALUES_PER_CHANGE, _CHANGES_MOST)
    residuals, starts = _best_segments(scores - scores.mean(), most)
    left = np.maximum(residuals / residuals[0], _RESIDUAL_LEAST)
    changes = np.arange(most + 1)
    price = max(_PRICE_LEAST, _PRICE_MORE + 2.0 * math.log(count))
    chosen = int(np.argmin(count * np.log(left) + price * changes))
    cuts = [count]
    for number in range(chosen, -1, -1):
        cuts.append(int(starts[number, cuts[-1]]))
    return cuts[::-1]


def _best_segments(
    scores: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The least sum of squares with 0 to `most` changes, and where the last segments begin.

    The second array has a row for each number of changes and a column for each end: the first
    index of the last segment of the best cut of the values before that end.
    """
    stride = -(-len(scores) // _PLACES_MOST)
    places = np.append(np.arange(0, len(scores), stride), len(scores))
    sums = np.concatenate([[0.0], np.cumsum(scores)])[places]
    squares = np.concatenate([[0.0], np.cumsum(scores**2)])[places]
    best = np.full((most + 1, len(places)), np.inf)
    starts = np.zeros((most + 1, len(scores) + 1), dtype=np.intp)
    for end in range(1, len(places)):
        begins = int(np.searchsorted(places, places[end] - _SEGMENT_LEAST, side="right"))
        if not begins:
            continue
        lengths = places[end] - places[:begins]
        cost = squares[end] - squares[:begins] - (sums[end] - sums[:begins]) ** 2 / lengths
        best[0, end] = cost[0]
        totals = best[:-1, :begins] + cost
        starts[1:, places[end]] = places[totals.argmin(axis=1)]
        best[1:, end] = totals.min(axis=1)
    return np.maximum(best[:, -1], 0.0), starts
