"""The histogram that RocksDB's and LevelDB's db_bench print, and percentiles from it.

    histogram = title body
    title     = "Microseconds per" what ":" | "** Level" n "read latency histogram (micros):"
    body      = "Count:" n "Average:" x "StdDev:" x
                "Min:" x "Median:" x "Max:" x
                [ "Percentiles:" { "P" p ":" x } ]
                dashes { bucket } blank

Both are printed by `HistogramStat::ToString` (RocksDB `monitoring/histogram.cc`) and
`Histogram::ToString` (LevelDB `util/histogram.cc`); only RocksDB has the line of percentiles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.programs.text_lines import LineReader

_N = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_N_OR_NONE = rf"(?:{_N}|-?nan)"  # the mean of nothing
TITLE = re.compile(
    r"Microseconds per (?P<what>\w+):"
    r"|\*\* Level (?P<level>\d+) read latency histogram \(micros\):"
)
_COUNT = re.compile(
    rf"Count: (?P<count>\d+)\s+Average: (?P<mean>{_N_OR_NONE})\s+StdDev: (?P<sd>{_N_OR_NONE})"
)
_MIN = re.compile(rf"Min: (?P<min>{_N})\s+Median: (?P<median>{_N_OR_NONE})\s+Max: (?P<max>{_N})")
_PERCENTILES = re.compile(rf"Percentiles:(?P<all>(?: P[0-9.]+: {_N})+)")
_PERCENTILE = re.compile(rf" P(?P<p>[0-9.]+): (?P<value>{_N})")
_DASHES = re.compile(r"-+")
_BUCKET = re.compile(
    rf"[\[(]\s*(?P<low>{_N}),\s*(?P<high>{_N})\s*[\])]\s+(?P<count>\d+)\s+{_N}%\s+{_N}%\s*#*\s*"
)
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True)
class Bucket:
    """How many operations took `low_us` to `high_us`."""

    low_us: float
    high_us: float
    count: int


@dataclass(frozen=True)
class HistogramText:
    """One printed histogram, in microseconds.

    `what` is the operation type, `op` for LevelDB, `level 0` for reads of the files of a level. The
    mean, deviation and median of no operation at all are None.

    `percentiles` are those printed, by their number ("99.9").
    """

    what: str
    count: int
    mean_us: float | None
    sd_us: float | None
    min_us: float
    median_us: float | None
    max_us: float
    percentiles: Mapping[str, float]
    buckets: tuple[Bucket, ...]

    def percentile_us(self, percent: float) -> float | None:
        """The percentile `percent`, 0 to 100, from the buckets; None for an empty histogram.

        Both programs' own formula (`HistogramStat::Percentile`, `Histogram::Percentile`): linear
        within the bucket that holds the rank, then limited to the smallest and largest value. It
        gives back what they print themselves.
        """
        threshold = self.count * (percent / 100.0)  # in their order, for the last digit
        below = 0
        for bucket in self.buckets:
            if below + bucket.count >= threshold:
                share = (threshold - below) / bucket.count
                value = bucket.low_us + share * (bucket.high_us - bucket.low_us)
                return min(max(value, self.min_us), self.max_us)
            below += bucket.count
        return self.max_us if self.buckets else None


def read_histogram(lines: LineReader) -> HistogramText:
    """The histogram that begins at the next line.

    Raises InputError with the line where it is not one, and where its buckets do not add up.
    """
    at = lines.peek()
    title = lines.expect(TITLE, "`Microseconds per write:`")
    count = lines.expect(_COUNT, "`Count: N Average: X StdDev: X`")
    least = lines.expect(_MIN, "`Min: X Median: X Max: X`")
    named = lines.take_if(_PERCENTILES)
    lines.expect(_DASHES, "a line of dashes")
    buckets: list[Bucket] = []
    while (found := lines.take_if(_BUCKET)) is not None:
        buckets.append(Bucket(float(found["low"]), float(found["high"]), int(found["count"])))
    lines.take_if(_BLANK)
    total = sum(bucket.count for bucket in buckets)
    if total != int(count["count"]):
        place = f"line {at.number if at is not None else 0}"
        why = "the buckets of this histogram do not add up to its count"
        raise InputError(lines.source, place, why=why, found=total, allowed=count["count"])
    return HistogramText(
        what=title["what"] or f"level {title['level']}",
        count=total,
        mean_us=_known(count["mean"]),
        sd_us=_known(count["sd"]),
        min_us=float(least["min"]),
        median_us=_known(least["median"]),
        max_us=float(least["max"]),
        percentiles=_percentiles(named),
        buckets=tuple(buckets),
    )


def _known(text: str) -> float | None:
    return None if text.endswith("nan") else float(text)


def _percentiles(line: re.Match[str] | None) -> dict[str, float]:
    if line is None:
        return {}
    return {one["p"]: float(one["value"]) for one in _PERCENTILE.finditer(line["all"])}
