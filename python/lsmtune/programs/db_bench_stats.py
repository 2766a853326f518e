"""The parts of db_bench's output that RocksDB itself writes: stats, statistics, levels.

    stats      = { "** Compaction Stats [" family "] **" heading dashes { row } }
                 { name ":" figures | read latency histogram of a level } "Interval stall:" ...
    statistics = { name "COUNT :" n | name "P50 :" x ... "COUNT :" n "SUM :" n }
    levels     = "Level Files Size(MB)" dashes { level files size }

Written by `InternalStats::DumpCFStats` and `DumpDBStats` (`db/internal_stats.cc`) and by
`StatisticsImpl::ToString`. Their figures are rounded to units as they go, so they are shown and
never computed with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lsmtune.programs.db_bench import TITLE, HistogramText, read_histogram
from lsmtune.programs.output import Line, LineReader

_STATS = re.compile(r"\*\* (?P<what>.+?) (?:\[(?P<family>[^\]]*)\] )?\*\*")
_DASHES = re.compile(r"-{3,}")
_SIZE_WITH_UNIT = re.compile(r"(?<=[\d.]) (?=[KMGT]?B\b)")
_LEVEL = re.compile(r" *(?P<level>\d+) +(?P<files>\d+) +(?P<size>\d+)")
_COUNT = re.compile(r"(?P<name>rocksdb\.\S+) COUNT : (?P<count>\d+)")
_DISTRIBUTION = re.compile(
    r"(?P<name>rocksdb\.\S+) (?P<percentiles>(?:P[0-9.]+ : \S+ )+)COUNT : (?P<count>\d+)"
    r" SUM : (?P<sum>\d+)"
)
_PERCENTILE = re.compile(r"P(?P<p>[0-9.]+) : (?P<value>\S+) ")
_FIGURES = re.compile(
    r"(?P<name>[A-Z][A-Za-z]*(?: [A-Za-z]+)*(?:\([A-Za-z0-9 ]+\))?): ?(?P<text>.*)"
)


@dataclass(frozen=True)
class LevelFiles:
    """One line of `levelstats`; the size in whole megabytes, as printed."""

    level: int
    files: int
    size_mb: int


@dataclass(frozen=True)
class StatsTable:
    """One table of compaction stats: rows by their first column (`L0`, `Sum`, `High`)."""

    family: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class DatabaseStats:
    """What `--benchmarks=...,stats` prints: tables, and the lines of figures by their names."""

    tables: tuple[StatsTable, ...]
    figures: Mapping[str, str]
    read_latencies: tuple[HistogramText, ...] = ()


@dataclass(frozen=True)
class Ticker:
    """One statistic: a count; with percentiles and a sum where it is a distribution."""

    count: int
    sum: int | None = None
    percentiles: Mapping[str, float] | None = None


def begins_stats(line: Line) -> bool:
    """Whether stats begin at `line`."""
    return _STATS.fullmatch(line.text.strip()) is not None


def read_stats(lines: LineReader) -> DatabaseStats:
    """The stats that begin at the next line, up to `Interval stall` or the last line of figures.

    Raises InputError with the line for a row that has not as many figures as its table columns.
    """
    tables: list[StatsTable] = []
    figures: dict[str, str] = {}
    latencies: list[HistogramText] = []
    while (line := lines.peek()) is not None:
        if TITLE.fullmatch(line.text):
            latencies.append(read_histogram(lines))
            continue
        title = _STATS.fullmatch(line.text.strip())
        if title is not None:
            lines.take()
            if title["what"] == "Compaction Stats":
                tables.append(_table(lines, title["family"] or ""))
            continue
        if not line.text.strip():
            lines.take()
            continue
        found = _FIGURES.fullmatch(line.text) or _bare_figures(line.text)
        if found is None:
            break
        lines.take()
        figures[found["name"]] = found["text"]
        if found["name"] == "Interval stall":
            break
    return DatabaseStats(tuple(tables), figures, tuple(latencies))


def _bare_figures(text: str) -> re.Match[str] | None:
    """Lines that have no colon after their name: those of the block cache."""
    return re.fullmatch(r"(?P<name>Block cache \w+)(?P<text>.*)", text)


def _table(lines: LineReader, family: str) -> StatsTable:
    columns = tuple(lines.take().text.split())
    lines.expect(_DASHES, "a line of dashes under the columns")
    rows: dict[str, dict[str, str]] = {}
    while (line := lines.peek()) is not None and line.text.strip():
        cells = _SIZE_WITH_UNIT.sub("", line.text).split()
        if len(cells) != len(columns):
            raise lines.refuse(line, f"{len(columns)} columns: {' '.join(columns)}")
        lines.take()
        rows[cells[0]] = dict(zip(columns, cells, strict=True))
    return StatsTable(family, columns, rows)


def read_levels(lines: LineReader) -> tuple[LevelFiles, ...]:
    """The rows of `levelstats`, whose heading has been read."""
    lines.expect(_DASHES, "a line of dashes under the columns")
    found: list[LevelFiles] = []
    while (match := lines.take_if(_LEVEL)) is not None:
        found.append(LevelFiles(int(match["level"]), int(match["files"]), int(match["size"])))
    return tuple(found)


def read_statistics(lines: LineReader) -> dict[str, Ticker]:
    """The statistics after `STATISTICS:`."""
    found: dict[str, Ticker] = {}
    while True:
        if (match := lines.take_if(_COUNT)) is not None:
            found[match["name"]] = Ticker(int(match["count"]))
        elif (match := lines.take_if(_DISTRIBUTION)) is not None:
            percentiles = {
                one["p"]: float(one["value"]) for one in _PERCENTILE.finditer(match["percentiles"])
            }
            found[match["name"]] = Ticker(int(match["count"]), int(match["sum"]), percentiles)
        else:
            return found
