"""What LevelDB's db_bench prints.

    output      = { header | warning | benchmark | skipped | compactions | files | note }
    benchmark   = name ":" x "micros/op;" [ x "MB/s" ] [ message ] [ histogram ] [ comparisons ]
    message     = "(" found "of" num "found)" | "(" n "ops)" | other text
    compactions = "Compactions" heading dashes { level files size time read write }
    files       = { "--- level" n "---" { number ":" bytes "[" smallest ".." largest "]" } }

The words are those of `benchmarks/db_bench.cc` (1.22 to 1.23). It prints neither operations per
second nor the elapsed time: `throughput_ops_s` says how they follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lsmtune.programs.db_bench_grammar import (
    DASHES,
    NAME_AND_MICROS,
    RATE_AND_MESSAGE,
    CommonLines,
    another_program,
    engine_version,
    read_all,
)
from lsmtune.programs.histogram_output import TITLE, HistogramText, read_histogram
from lsmtune.programs.text_lines import LineReader

_HEADER = re.compile(
    r"(?P<name>LevelDB|Date|CPU|CPUCache|Keys|Values|Entries|RawSize|FileSize): *(?P<value>.*?) *"
)
_BENCHMARK = re.compile(rf"{NAME_AND_MICROS};{RATE_AND_MESSAGE}")
_FOUND = re.compile(r"\((?P<found>\d+) of (?P<num>\d+) found\)")
_UNKNOWN = re.compile(r"unknown benchmark '(?P<name>.*)'")
_COMPARISONS = re.compile(r"Comparisons: \d+")
_TITLE = re.compile(r" +Compactions")
_HEADING = re.compile(r"Level  Files Size\(MB\) Time\(sec\) Read\(MB\) Write\(MB\)")
_LEVEL = re.compile(
    r" *(?P<level>\d+) +(?P<files>\d+) +(?P<size>\d+) +(?P<time>\d+) +(?P<read>\d+) +(?P<write>\d+)"
)
_FILES_LEVEL = re.compile(r"--- level (?P<level>\d+) ---")
_FILE = re.compile(r" (?P<number>\d+):(?P<bytes>\d+)\[.*\]")
_PROGRESS = re.compile(r"\.\.\. .*|long op: .*|# .*|")


@dataclass(frozen=True)
class LevelCompactions:
    """One row of `stats`: whole megabytes and seconds, as printed."""

    level: int
    files: int
    size_mb: int
    time_s: int
    read_mb: int
    write_mb: int


@dataclass(frozen=True)
class BenchmarkResult:
    """One benchmark line and what belongs to it.

    `keys_found` is that of one thread; of how many tries is not printed (the `num` that stands
    there is the number of keys, even where `--reads` says otherwise).
    """

    name: str
    micros_per_operation: float
    mb_per_s: float | None
    keys_found: int | None = None
    message: str = ""
    histogram: HistogramText | None = None

    def throughput_ops_s(self, threads: int) -> float:
        """Operations per second of `threads` threads.

        `Stats::Report` divides the seconds of all threads together by their operations, so that
        one thread performs 10^6 / micros per second, and all of them `threads` times that: exact
        for one thread, and otherwise as good as the threads took equally long.
        """
        return threads * 1e6 / self.micros_per_operation

    def elapsed_s(self, operations: int, threads: int) -> float:
        """How long `operations` took on `threads` threads, by the same reasoning."""
        return self.micros_per_operation * operations / threads / 1e6


@dataclass(frozen=True)
class LeveldbDbBenchOutput:
    """What was read. `warnings` lack their `WARNING: `; `files` are bytes by level and number."""

    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    benchmarks: tuple[BenchmarkResult, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    compactions: tuple[LevelCompactions, ...] = ()
    files: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> str | None:
        """LevelDB's version; None where stderr, on which it is printed, is not in the text."""
        return engine_version(self.headers, "LevelDB")

    def result_of(self, name: str) -> BenchmarkResult | None:
        """The last benchmark `name`."""
        named = [one for one in self.benchmarks if one.name == name]
        return named[-1] if named else None


def parse_leveldb_db_bench(text: str, source: str) -> LeveldbDbBenchOutput:
    """What LevelDB's db_bench printed, stdout alone or with stderr.

    Raises InputError with the line for a result that is cut off or broken, and where there is
    neither a header nor a result: `text` is of another program then.
    """
    reader = _Reader(LineReader(text, source))
    read_all(reader.take_one)
    output = reader.output()
    if not output.benchmarks and "LevelDB" not in output.headers:
        allowed = "LevelDB's db_bench, `fillseq : 2.874 micros/op; 38.5 MB/s`"
        raise another_program(text, source, allowed)
    return output


class _Reader:
    """The state of one parse: what has been read so far."""

    def __init__(self, lines: LineReader) -> None:
        self._lines = lines
        self._common = CommonLines(lines, _HEADER)
        self._benchmarks: list[BenchmarkResult] = []
        self._unknown: list[str] = []
        self._compactions: tuple[LevelCompactions, ...] = ()
        self._files: dict[int, dict[int, int]] = {}

    def output(self) -> LeveldbDbBenchOutput:
        return LeveldbDbBenchOutput(
            headers=self._common.headers,
            warnings=tuple(self._common.warnings),
            benchmarks=tuple(self._benchmarks),
            skipped=self._common.skipped,
            unknown=tuple(self._unknown),
            compactions=self._compactions,
            files=self._files,
            notes=tuple(self._common.notes),
        )

    def take_one(self) -> bool:
        """Reads one rule; False at the end."""
        lines = self._lines
        if lines.peek() is None:
            return False
        if (match := lines.take_if(_BENCHMARK)) is not None:
            self._benchmarks.append(self._benchmark(match))
        elif lines.take_if(_TITLE) is not None:
            self._compactions = self._table()
        elif (match := lines.take_if(_FILES_LEVEL)) is not None:
            self._files[int(match["level"])] = self._level_files()
        elif not self._common.take() and not self._take_short():
            self._common.take_note()
        return True

    def _take_short(self) -> bool:
        """Reads a rule of one line."""
        take = self._lines.take_if
        if (match := take(_UNKNOWN)) is not None:
            self._unknown.append(match["name"])
        else:
            return any(take(rule) is not None for rule in (_PROGRESS, DASHES, _COMPARISONS))
        return True

    def _benchmark(self, line: re.Match[str]) -> BenchmarkResult:
        message = line["message"] or ""
        found = _FOUND.search(message)
        following = self._lines.peek()
        with_histogram = following is not None and TITLE.fullmatch(following.text) is not None
        return BenchmarkResult(
            name=line["name"],
            micros_per_operation=float(line["micros"]),
            mb_per_s=None if line["mb"] is None else float(line["mb"]),
            keys_found=None if found is None else int(found["found"]),
            message=message.strip(),
            histogram=read_histogram(self._lines) if with_histogram else None,
        )

    def _table(self) -> tuple[LevelCompactions, ...]:
        self._lines.expect(_HEADING, "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)")
        self._lines.expect(DASHES, "a line of dashes under the columns")
        found: list[LevelCompactions] = []
        names = ("level", "files", "size", "time", "read", "write")
        while (match := self._lines.take_if(_LEVEL)) is not None:
            found.append(LevelCompactions(*(int(match[name]) for name in names)))
        return tuple(found)

    def _level_files(self) -> dict[int, int]:
        found: dict[int, int] = {}
        while (match := self._lines.take_if(_FILE)) is not None:
            found[int(match["number"])] = int(match["bytes"])
        return found
