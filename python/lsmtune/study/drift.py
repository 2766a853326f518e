"""Drift: what the anchors of a study say of its machine, and what that makes of trials' values.

An anchor is a run of the baseline. Their series, in the order in which they were stored, is cut
into segments within which the machine was the same (`stats.changepoint`), one series for each
objective. A trial is judged relative to the anchors of its own segment: its value times the level
of the first segment, over the level of its own; so that a trial that ran while a neighbour took
half of the machine is not a bad one. Within one segment values are left as they are.

Where in the gap between two anchors the machine changed is not known: a run in the gap belongs to
neither segment. Pure functions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from lsmtune.stats.changepoint import segments
from lsmtune.study.stored import Round

# The share of the time of a search that anchors may take. With one anchor after every ten trials
# it is a tenth; trials that are shorter than the baseline would make it more.
ANCHOR_SHARE_MAX = 0.15


@dataclass(frozen=True)
class Segment:
    """Rows `first` to `last` of the store, from the beginning of an anchor to the end of another.

    `log_level` is the median of the logarithms of its anchors' values: no wild run moves it.
    """

    first: int
    last: int
    log_level: float


@dataclass(frozen=True)
class Series:
    """The segments of one objective in order; none where there is nothing to judge by."""

    segments: tuple[Segment, ...] = ()

    def around(self, row: int) -> tuple[int, int]:
        """The segments just before and after `row`: the same one where it lies within.

        The first and the last segment reach to the ends of the study.
        """
        after = sum(segment.first <= row for segment in self.segments) - 1
        if after < 0:
            return 0, 0
        inside = row <= self.segments[after].last or after == len(self.segments) - 1
        return (after, after) if inside else (after, after + 1)

    def log_factor(self, row: int) -> float:
        """What to add to the logarithm of a value that was measured at `row`.

        In a gap, the mean of what both neighbours say.
        """
        if len(self.segments) < 2:
            return 0.0
        own = fmean(self.segments[index].log_level for index in self.around(row))
        return self.segments[0].log_level - own


@dataclass(frozen=True)
class Change:
    """The machine changed after row `before` and before row `after`.

    `ratio` is the level of the objective number `objective` then, over that before.
    """

    objective: int
    before: int
    after: int
    ratio: float


@dataclass(frozen=True)
class Drift:
    """One Series for each objective."""

    series: tuple[Series, ...] = ()

    def segment_of(self, row: int) -> tuple[int, ...] | None:
        """The segment of each objective at `row`; None where one of them is not known."""
        around = [series.around(row) for series in self.series]
        if any(before != after for before, after in around):
            return None
        return tuple(before for before, _ in around)

    def judged(self, values: Sequence[float], row: int) -> tuple[float, ...]:
        """`values` of the objectives, measured at `row`, as they would be in the first segment."""
        if not self.series:
            return tuple(values)
        factors = (math.exp(series.log_factor(row)) for series in self.series)
        return tuple(value * factor for value, factor in zip(values, factors, strict=True))

    def factor(self, row: int) -> float:
        """What a value of the first objective that was measured at `row` is multiplied by."""
        return math.exp(self.series[0].log_factor(row)) if self.series else 1.0

    def factor_now(self) -> float:
        """The factor of a run that begins now."""
        return self.factor(sys.maxsize)

    def changes(self) -> list[Change]:
        """Every change, in the order of the objectives."""
        return [
            Change(number, before.last, after.first, math.exp(after.log_level - before.log_level))
            for number, series in enumerate(self.series)
            for before, after in pairwise(series.segments)
        ]


def drift_of(anchors: Sequence[Round]) -> Drift:
    """What `anchors`, in order of their rows, say. Those without values are left out.

    An objective with a value that is not above zero has no levels and is judged as it is.
    """
    known = [anchor for anchor in anchors if anchor.values is not None]
    series = []
    for values in zip(*(anchor.values or () for anchor in known), strict=True):
        if not all(value > 0 and math.isfinite(value) for value in values):
            series.append(Series())
            continue
        logs = [math.log(value) for value in values]
        cuts = pairwise(_cuts(logs))
        parts = (
            Segment(known[start].first, known[end - 1].last, median(logs[start:end]))
            for start, end in cuts
        )
        series.append(Series(tuple(parts)))
    return Drift(tuple(series))


def _cuts(logs: Sequence[float]) -> list[int]:
    """Where segments begin, and the end of the last: each cut between the levels beside it.

    The noise is estimated from the series itself: what is known of it otherwise comes from the
    same anchors, and from no more than a few repeats. A search that wants several values in each
    segment cuts a new level off too early, as long as it was seen less often than that. So the
    anchor before a cut, or the one after it, goes to the other side while its value is nearer to
    the level there.
    """
    cuts = [*(part.start for part in segments(logs, None)), len(logs)]
    for index in range(1, len(cuts) - 1):
        first, end = cuts[index - 1], cuts[index + 1]
        before, after = median(logs[first : cuts[index]]), median(logs[cuts[index] : end])
        while cuts[index] < end - 1 and _nearer(logs[cuts[index]], before, after):
            cuts[index] += 1
        while cuts[index] > first + 1 and _nearer(logs[cuts[index] - 1], after, before):
            cuts[index] -= 1
    return cuts


def _nearer(value: float, level: float, other: float) -> bool:
    return abs(value - level) < abs(value - other)
