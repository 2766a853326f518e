"""What RocksDB's and LevelDB's db_bench have in common: benchmarks, and the lines that both print.

LevelDB's db_bench is where RocksDB's began, so the two still share these rules. A line that belongs
to no rule of either is a note: it is kept, with its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.workload import Phase
from lsmtune.programs.output import LineReader, cannot

# The operation type, in lsmtune's words, that a benchmark's latencies are those of.
TIMED_TYPE: Mapping[str, str] = {
    "fillseq": "put",
    "fillrandom": "put",
    "filluniquerandom": "put",
    "overwrite": "put",
    "deleterandom": "delete",
    "readrandom": "get",
    "readmissing": "get",
    "readhot": "get",
    "readwhilewriting": "get",
    "readseq": "next",
    "seekrandom": "seek",
}
WRITES = frozenset({"fillseq", "fillrandom", "filluniquerandom", "overwrite"})
# Benchmarks that begin with an empty database.
FRESH = frozenset({"fillseq", "fillrandom", "filluniquerandom"})


def benchmark_of(program: str, phase: Phase, known: tuple[str, ...], *, first: bool) -> str:
    """The benchmark that performs `phase`, one of `known`.

    On a database that is there already (not `first`), random keys are written by `overwrite`.
    Raises InputError for an operation that the program has no benchmark of.
    """
    operation = phase.operation
    field = f"{phase.name}: operation"
    if operation is None:
        what = "a mix of operations" if phase.mix is not None else "nothing"
        raise cannot(program, field, found=what, allowed=", ".join(known))
    if operation == "fillrandom" and not first:
        operation = "overwrite"
    if operation not in known:
        nearest = nearest_name(operation, known)
        hint = f"; the nearest is {nearest}" if nearest else ""
        raise cannot(program, field, found=operation, allowed=f"{', '.join(known)}{hint}")
    if operation in FRESH and not first:
        raise cannot(program, field, found=operation, why="it fills only an empty database")
    return operation


# --- the lines that both db_benches print alike: headers, warnings, benchmarks skipped, and notes
#
# LevelDB's db_bench is where RocksDB's began, so the two still share these rules. What belongs to
# no rule of either is a note: kept, with its text.

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
# The name of a benchmark and the time of one of its operations; nothing done divides by zero.
NAME_AND_MICROS = rf"(?P<name>\S+) +: +(?P<micros>{NUMBER}|-?nan|inf) micros/op"
RATE_AND_MESSAGE = rf"(?: +(?P<mb>{NUMBER}|-?nan|inf) MB/s)?(?: (?P<message>.*))?"
DASHES = re.compile(r"-{3,}")
_WARNING = re.compile(r"WARNING: (?P<text>.*)")
_SKIPPED = re.compile(r"(?P<name>\S+) +: skipped \((?P<why>.*)\)")


class CommonLines:
    """What was read so far by the rules that both have; `header` is the rule of a header line."""

    def __init__(self, lines: LineReader, header: re.Pattern[str]) -> None:
        self._lines = lines
        self._header = header
        self.headers: dict[str, str] = {}
        self.warnings: list[str] = []
        self.skipped: dict[str, str] = {}
        self.notes: list[str] = []

    def take(self) -> bool:
        """Reads a warning, a header, or that a benchmark was skipped; False where none is next."""
        take = self._lines.take_if
        if (match := take(_WARNING)) is not None:
            self.warnings.append(match["text"])
        elif (match := take(self._header)) is not None:
            self.headers[match["name"]] = match["value"]
        elif (match := take(_SKIPPED)) is not None:
            self.skipped[match["name"]] = match["why"]
        else:
            return False
        return True

    def take_note(self) -> None:
        """Reads a line that belongs to no rule; a blank one says nothing."""
        text = self._lines.take().text.strip()
        if text:
            self.notes.append(text)


def read_all(take_one: Callable[[], bool]) -> None:
    """Reads one rule after another, until `take_one` finds none."""
    while take_one():
        pass


def engine_version(headers: Mapping[str, str], engine: str) -> str | None:
    """What the header of `engine` says; None where stderr, on which it is printed, was not read."""
    text = headers.get(engine)
    return None if text is None else text.removeprefix("version").strip()


def another_program(text: str, source: str, allowed: str) -> InputError:
    """The error for `text` in which there is neither a header nor a result."""
    return InputError(source, found=text[:80], allowed=f"output of {allowed}")


# --- the histogram that RocksDB's and LevelDB's db_bench print, and percentiles from it
#
#     histogram = title body
#     title     = "Microseconds per" what ":" | "** Level" n "read latency histogram (micros):"
#     body      = "Count:" n "Average:" x "StdDev:" x
#                 "Min:" x "Median:" x "Max:" x
#                 [ "Percentiles:" { "P" p ":" x } ]
#                 dashes { bucket } blank
#
# Both are printed by `HistogramStat::ToString` (RocksDB `monitoring/histogram.cc`) and
# `Histogram::ToString` (LevelDB `util/histogram.cc`); only RocksDB has the line of percentiles.

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
