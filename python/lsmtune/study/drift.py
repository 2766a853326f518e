"""Drift: what the anchors of a study say of its machine, and what that makes of trials' values.

An anchor is a run of the baseline. Their series, in the order in which they were stored, is cut
into segments within which the machine was the same (`stats.changepoint`), one series for each
objective. A trial is judged relative to the anchors of its own segment: its value times the level
of the first segment, over the level of its own; so that a trial that ran while a neighbour took
half of the machine is not a bad one. Within one segment values are left as they are.

Where in the gap between two anchors the machine changed is not known: a run in the gap belongs to
neither segment.

Of a fleet each host has a series of its own, and the host that began the study says what all values
are brought to: the first segment of its series. Pure functions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
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
    """The segments of one objective on one host in order; none where there is nothing to judge by.

    `log_base` is the level that values are brought to, None for that of the first segment.
    """

    segments: tuple[Segment, ...] = ()
    log_base: float | None = None

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
        if not self.segments or (self.log_base is None and len(self.segments) < 2):
            return 0.0
        own = fmean(self.segments[index].log_level for index in self.around(row))
        base = self.segments[0].log_level if self.log_base is None else self.log_base
        return base - own


@dataclass(frozen=True)
class Change:
    """The machine, or the `host` of a fleet, changed after row `before` and before row `after`.

    `ratio` is the level of the objective number `objective` then, over that before.
    """

    objective: int
    before: int
    after: int
    ratio: float
    host: str = ""


@dataclass(frozen=True)
class Drift:
    """One Series for each objective, of each host, the one that began the study first."""

    hosts: Mapping[str, tuple[Series, ...]] = field(default_factory=dict)

    def segment_of(self, row: int, host: str = "") -> tuple[int, ...] | None:
        """The segment of each objective at `row`; None where one of them is not known.

        On a host whose baseline was not measured none is.
        """
        if self.hosts and host not in self.hosts:
            return None
        around = [series.around(row) for series in self.hosts.get(host, ())]
        if any(before != after for before, after in around):
            return None
        return tuple(before for before, _ in around)

    def judged(self, values: Sequence[float], row: int, host: str = "") -> tuple[float, ...]:
        """`values` of the objectives, measured at `row`, as they would be in the first segment."""
        known = self.hosts.get(host)
        if not known:
            return tuple(values)
        factors = (math.exp(series.log_factor(row)) for series in known)
        return tuple(value * factor for value, factor in zip(values, factors, strict=True))

    def factor(self, row: int = sys.maxsize, host: str = "") -> float:
        """What a value of the first objective, measured at `row` or now, is multiplied by."""
        known = self.hosts.get(host)
        return math.exp(known[0].log_factor(row)) if known else 1.0

    def alike_to(self, other: Drift) -> dict[str, int]:
        """By host, the last row up to which a run is judged the same by `other`."""
        rows = dict.fromkeys(self.hosts, 0)
        for host in self.hosts.keys() & other.hosts.keys():
            both = zip(self.hosts[host], other.hosts[host], strict=True)
            rows[host] = min((_alike(one, another) for one, another in both), default=sys.maxsize)
        return rows

    def changes(self) -> list[Change]:
        """Every change, in the order of hosts and objectives."""
        return [
            Change(
                number,
                before.last,
                after.first,
                ratio=math.exp(after.log_level - before.log_level),
                host=host,
            )
            for host, known in self.hosts.items()
            for number, series in enumerate(known)
            for before, after in pairwise(series.segments)
        ]


def _alike(one: Series, other: Series) -> int:
    """The last row up to which both series judge runs the same."""
    if one.log_base != other.log_base:
        return 0
    if one.log_base is None and max(len(one.segments), len(other.segments)) < 2:
        return sys.maxsize
    both = zip(one.segments, other.segments, strict=False)
    same = list(takewhile(lambda pair: pair[0] == pair[1], both))
    # Between the last segment that is the same and the next one the next one counts.
    return same[-1][0].last if same else 0


Kept = dict[str, tuple[Sequence[Round], tuple[Series, ...]]]


def drift_of(anchors: Sequence[Round], kept: Kept | None = None) -> Drift:
    """What `anchors`, in order of their rows, say. Those without values are left out.

    An objective with a value that is not above zero has no levels and is judged as it is. `kept` is
    what this found before, by host: one with the same anchors is not looked at again.
    """
    kept = {} if kept is None else kept
    by_host: dict[str, list[Round]] = {}
    for anchor in anchors:
        if anchor.values is not None:
            by_host.setdefault(anchor.host, []).append(anchor)
    hosts: dict[str, tuple[Series, ...]] = {}
    first: tuple[Series, ...] = ()
    for host, known in by_host.items():
        before, own = kept.get(host, ((), ()))
        if before != known:
            own = tuple(_series(known, index) for index in range(len(known[0].values or ())))
            kept[host] = known, own
        if not hosts:
            first = own
        elif all(series.segments for series in (*first, *own)):
            bases = (series.segments[0].log_level for series in first)
            own = tuple(replace(s, log_base=base) for s, base in zip(own, bases, strict=True))
        hosts[host] = own
    return Drift(hosts)


def _series(anchors: Sequence[Round], objective: int) -> Series:
    """What `anchors` of one host say of one objective."""
    values = [(anchor.values or ())[objective] for anchor in anchors]
    if not all(value > 0 and math.isfinite(value) for value in values):
        return Series()
    logs = [math.log(value) for value in values]
    parts = (
        Segment(anchors[start].first, anchors[end - 1].last, median(logs[start:end]))
        for start, end in pairwise(_cuts(logs))
    )
    return Series(tuple(parts))


def _cuts(logs: Sequence[float]) -> list[int]:
    """Where segments begin, and the end of the last: each cut between the levels beside it.

    The noise is estimated from the series itself. A search that wants several values in each
    segment cuts a new level off too early while it was seen less often than that. So the anchor
    before a cut, or the one after it, goes to the other side while it is nearer to the level there.
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
