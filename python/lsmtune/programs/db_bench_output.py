"""What RocksDB's and LevelDB's db_bench print. A `Dialect` says what differs between the two.

    output     = { header | warning | benchmark | skipped | tables | announcement | note }
    header     = name ":" value                  (`Keys:`, `RocksDB:`, ...)
    benchmark  = name ":" x "micros/op" [ n "ops/sec" [ x "seconds" n "operations" ] ] ";"
                 [ x "MB/s" ] [ message ] [ perf context ] { histogram }
    message    = "(" found "of" tried "found)" | "(" mixgraph's figures ")" | other text

The words are those of `Stats::Report`, `CombinedStats` and `PrintHeader` of RocksDB's
`tools/db_bench_tool.cc`, releases 7.8 to 11 (seconds and operations came with 7.0), and of
LevelDB's `benchmarks/db_bench.cc`, 1.22 to 1.23, which prints neither operations per second nor
seconds. Averages of repeated benchmarks and the engine's own tables (stats, tickers, levels) are
passed over. What belongs to no rule is a note: kept, with its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.model.config import Build
from lsmtune.model.measurement import Latency, PhaseMeasurement
from lsmtune.model.metrics import PERCENTILES
from lsmtune.programs.output import LineReader
from lsmtune.programs.program import Follow, Observed, StepOutput, follow_totals

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
# The name of a benchmark and the time of one of its operations; nothing done divides by zero.
_NAME_AND_MICROS = rf"(?P<name>\S+) +: +(?P<micros>{_NUMBER}|-?nan|inf) micros/op"
_RATE_AND_MESSAGE = rf"(?: +(?:{_NUMBER}|-?nan|inf) MB/s)?(?: (?P<message>.*))?"
_WARNING = re.compile(r"WARNING: (?P<text>.*)")
_SKIPPED = re.compile(r"(?P<name>\S+) +: skipped \((?P<why>.*)\)")
_REPEATING = re.compile(r"(?P<what>Warming up|Running) benchmark (?:by running|for) \d+ times")
_FOUND = re.compile(r"\((?P<found>\d+) of (?P<tried>\d+) found\)")
_MIXGRAPH = re.compile(
    # What was found comes first, whatever the words say: `get_found + seek_found, gets + seek`.
    r"\( Gets:(?P<gets>\d+) Puts:\d+ Seek:(?P<seeks>\d+), reads (?P<found>\d+) "
    rf"in \d+ found, avg size: (?:{_NUMBER}|-?nan) value, (?:{_NUMBER}|-?nan) scan\)"
)
_PERF_CONTEXT = "PERF_CONTEXT:"
_ASSERTIONS = "Assertions are enabled"


@dataclass(frozen=True)
class Dialect:
    """What one db_bench prints otherwise than the other.

    `signs` are headers that only this one prints. `tables` begins tables of the engine's own, which
    end with the next result; `passed_over` are lines that say nothing of a result.
    """

    engine: str
    signs: frozenset[str]
    header: re.Pattern[str]
    benchmark: re.Pattern[str]
    tables: re.Pattern[str]
    passed_over: re.Pattern[str]
    example: str


ROCKSDB = Dialect(
    engine="RocksDB",
    signs=frozenset({"RocksDB", "Memtablerep"}),
    header=re.compile(
        r"(?P<name>RocksDB|Date|CPU|CPUCache|Keys|Values|Values Distribution|Entries|Prefix"
        r"|Keys per prefix|RawSize|FileSize|Write rate|Read rate|Compression|Compression manager"
        r"|Compression sampling rate|Memtablerep|Perf Level|DB path): *(?P<value>.*?) *"
    ),
    benchmark=re.compile(
        rf"{_NAME_AND_MICROS} (?P<rate>-?\d+) ops/sec"
        rf"(?: (?P<seconds>{_NUMBER}) seconds (?P<operations>\d+) operations)?;{_RATE_AND_MESSAGE}"
    ),
    tables=re.compile(r"\*\* .+ \*\*|Level +Files +Size\(MB\)|STATISTICS:"),
    passed_over=re.compile(
        r"Initializing RocksDB Options from .*|Integrated BlobDB: .*|waitforcompaction\(.*\): .*"
        r"|flush memtable|Set seed to \d+ because --seed was 0|\S+ \[CI95 \d+ runs\] : .*"
        r"|\S+ \[(?:AVG +|MEDIAN )\d+ runs\] : -?\d+ .*|\.\.\. .*|# .*|-{3,}|"
    ),
    example="RocksDB's db_bench, `fillseq : 2.5 micros/op 400000 ops/sec ...`",
)
LEVELDB = Dialect(
    engine="LevelDB",
    signs=frozenset({"LevelDB"}),
    header=re.compile(
        r"(?P<name>LevelDB|Date|CPU|CPUCache|Keys|Values|Entries|RawSize|FileSize)"
        r": *(?P<value>.*?) *"
    ),
    benchmark=re.compile(rf"{_NAME_AND_MICROS};{_RATE_AND_MESSAGE}"),
    tables=re.compile(r"Compactions|--- level \d+ ---"),
    passed_over=re.compile(
        r"unknown benchmark '.*'|Comparisons: \d+|\.\.\. .*|long op: .*|# .*|-{3,}|"
    ),
    example="LevelDB's db_bench, `fillseq : 2.874 micros/op; 38.5 MB/s`",
)


@dataclass(frozen=True)
class BenchmarkResult:
    """One benchmark line and what belongs to it.

    `micros_per_operation` is the time of one thread. What follows it is RocksDB's, seconds and
    operations from 7.0 on. `keys_found` and `keys_tried` are those of one thread, which is all that
    db_bench says of them: of mixgraph those of its gets and seeks; LevelDB's `keys_tried` is the
    number of keys, whatever `--reads` says. `warmup`: it ran before those that count (`[W1]`).
    """

    name: str
    micros_per_operation: float
    throughput_ops_s: int | None = None
    elapsed_s: float | None = None
    operations: int | None = None
    keys_found: int | None = None
    keys_tried: int | None = None
    histograms: tuple[HistogramText, ...] = ()
    warmup: bool = False


@dataclass(frozen=True)
class DbBenchOutput:
    """What was read; `warnings` lack their `WARNING: `.

    `version` is the engine's; None where stderr, on which it is printed, is not in the text.
    """

    warnings: tuple[str, ...]
    benchmarks: tuple[BenchmarkResult, ...]
    skipped: Mapping[str, str]
    notes: tuple[str, ...]
    version: str | None

    @property
    def build(self) -> Build:
        """How the program was built, by the warnings that it printed."""
        assertions = any(warning.startswith(_ASSERTIONS) for warning in self.warnings)
        return Build.ASSERTIONS_ON if assertions else Build.RELEASE

    def result_of(self, name: str) -> BenchmarkResult | None:
        """The last benchmark `name` that was no warmup."""
        named = [one for one in self.benchmarks if one.name == name and not one.warmup]
        return named[-1] if named else None


def parse_db_bench(text: str, source: str, dialect: Dialect) -> DbBenchOutput:
    """What a db_bench printed, stdout alone or with stderr.

    Raises InputError with the line for a result that is cut off or broken, and where there is
    neither a header nor a result: `text` is of another program then.
    """
    lines = LineReader(text, source)
    headers: dict[str, str] = {}
    warnings: list[str] = []
    benchmarks: list[BenchmarkResult] = []
    skipped: dict[str, str] = {}
    notes: list[str] = []
    in_tables = warming_up = False
    while (line := lines.peek()) is not None:
        if (match := lines.take_if(dialect.benchmark)) is not None:
            benchmarks.append(_result(lines, match, warmup=warming_up))
            in_tables = False
        elif dialect.tables.fullmatch(line.strip()) is not None:
            lines.take()
            in_tables = True
        elif (match := lines.take_if(_WARNING)) is not None:
            warnings.append(match["text"])
        elif (match := lines.take_if(dialect.header)) is not None:
            headers[match["name"]] = match["value"]
        elif (match := lines.take_if(_SKIPPED)) is not None:
            skipped[match["name"]] = match["why"]
        elif (match := lines.take_if(_REPEATING)) is not None:
            warming_up = match["what"] == "Warming up"
        elif lines.take_if(dialect.passed_over) is None:
            note = lines.take().strip()
            notes += [note] if note and not in_tables else []
    if not benchmarks and not headers.keys() & dialect.signs:
        raise InputError(source, found=text[:80], allowed=f"output of {dialect.example}")
    version = headers.get(dialect.engine)
    return DbBenchOutput(
        warnings=tuple(warnings),
        benchmarks=tuple(benchmarks),
        skipped=skipped,
        notes=tuple(notes),
        version=None if version is None else version.removeprefix("version").strip(),
    )


def _result(lines: LineReader, line: re.Match[str], *, warmup: bool) -> BenchmarkResult:
    message = line["message"] or ""
    if not message.endswith(_PERF_CONTEXT) and message.startswith("("):
        lines.take_if(re.compile(r" *"))  # this message ends with a line break of its own
    following = lines.peek()
    if message.endswith(_PERF_CONTEXT):
        lines.take()  # the counts stand in a line of their own
    elif following is not None and following.strip() == _PERF_CONTEXT:
        lines.take()
        lines.take()
    keys, mixgraph = _FOUND.search(message), _MIXGRAPH.search(message)
    histograms: list[HistogramText] = []
    while (following := lines.peek()) is not None and _TITLE.fullmatch(following):
        histograms.append(_histogram(lines))
    groups = line.groupdict()  # LevelDB's line has no rate, seconds or operations
    rate, seconds, operations = (groups.get(name) for name in ("rate", "seconds", "operations"))
    tried = None if keys is None else int(keys["tried"])
    if mixgraph is not None:
        tried = int(mixgraph["gets"]) + int(mixgraph["seeks"])
    lookups = mixgraph or keys
    return BenchmarkResult(
        name=line["name"],
        micros_per_operation=float(line["micros"]),
        throughput_ops_s=None if rate is None else int(rate),
        elapsed_s=None if seconds is None else float(seconds),
        operations=None if operations is None else int(operations),
        keys_found=None if lookups is None else int(lookups["found"]),
        keys_tried=tried,
        histograms=tuple(histograms),
        warmup=warmup,
    )


def read_result(
    program: str,
    dialect: Dialect,
    index: int,
    benchmark: str,
    measured: Callable[[BenchmarkResult, StepOutput], PhaseMeasurement],
    output: StepOutput,
) -> Observed:
    """The last result of `benchmark`, which performed phase `index`, as it is `measured`.

    Raises InputError as `parse_db_bench` does, and where there is none.
    """
    printed = parse_db_bench(output.errors() + "\n" + output.text(), program, dialect)
    result = printed.result_of(benchmark)
    if result is None:
        why = printed.skipped.get(benchmark, "printed no result")
        raise InputError(program, benchmark, why=why, found="; ".join(printed.notes) or None)
    if result.micros_per_operation <= 0:  # infinitely many per second
        why = "took less time than it can tell: 0.000 micros/op"
        raise InputError(program, result.name, why=why, allowed="more operations")
    phases = {index: measured(result, output)}
    return Observed(phases, printed.warnings, printed.version, printed.build)


def introduced(program: str, dialect: Dialect, text: str) -> Observed:
    """What a db_bench says of itself in `text`, whatever it performed."""
    printed = parse_db_bench(text, program, dialect)
    return Observed({}, printed.warnings, printed.version, printed.build)


def leveldb_pace(micros_per_operation: float, operations: int, threads: int) -> tuple[float, float]:
    """Seconds that `operations` took on `threads` threads, and operations per second of all.

    `Stats::Report` divides the seconds of all threads together by their operations, so that one
    thread performs 10^6 / micros per second, and all of them `threads` times that: exact for one
    thread, and otherwise as good as the threads took equally long.
    """
    elapsed_s = micros_per_operation * operations / threads / 1e6
    return elapsed_s, threads * 1e6 / micros_per_operation


# --- the histogram that both print, and percentiles from it
#
#     histogram = title body
#     title     = "Microseconds per" what ":"
#     body      = "Count:" n "Average:" x "StdDev:" x
#                 "Min:" x "Median:" x "Max:" x
#                 [ "Percentiles:" { "P" p ":" x } ]
#                 dashes { bucket } blank
#
# Both are printed by `HistogramStat::ToString` (RocksDB `monitoring/histogram.cc`) and
# `Histogram::ToString` (LevelDB `util/histogram.cc`); only RocksDB has the line of percentiles.

_N = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_N_OR_NONE = rf"(?:{_N}|-?nan)"  # the mean of nothing
_TITLE = re.compile(r"Microseconds per (?P<what>\w+):")
_COUNT = re.compile(
    rf"Count: (?P<count>\d+)\s+Average: (?P<mean>{_N_OR_NONE})\s+StdDev: {_N_OR_NONE}"
)
_MIN = re.compile(rf"Min: (?P<min>{_N})\s+Median: {_N_OR_NONE}\s+Max: (?P<max>{_N})")
_PERCENTILES = re.compile(rf"Percentiles:(?: P[0-9.]+: {_N})+")
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

    `what` is the operation type, `op` for LevelDB. The mean of no operation at all is None.
    """

    what: str
    count: int
    mean_us: float | None
    min_us: float
    max_us: float
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

    def latency(self) -> Latency | None:
        """The latency that it tells; percentiles by the program's own formula."""
        if not self.count or self.mean_us is None:
            return None
        return Latency(
            count=self.count,
            latency_us_mean=self.mean_us,
            latency_us_max=self.max_us,
            histogram_ns_base64="",
            **{name: self.percentile_us(percent) for name, percent in PERCENTILES.items()},
        )


def _histogram(lines: LineReader) -> HistogramText:
    """The histogram that begins at the next line.

    Raises InputError with the line where it is not one, and where its buckets do not add up.
    """
    title = lines.expect(_TITLE, "`Microseconds per write:`")
    first = lines.taken
    count = lines.expect(_COUNT, "`Count: N Average: X StdDev: X`")
    least = lines.expect(_MIN, "`Min: X Median: X Max: X`")
    lines.take_if(_PERCENTILES)
    lines.expect(_DASHES, "a line of dashes")
    buckets: list[Bucket] = []
    while (row := lines.take_if(_BUCKET)) is not None:
        buckets.append(Bucket(float(row["low"]), float(row["high"]), int(row["count"])))
    lines.take_if(_BLANK)
    total = sum(bucket.count for bucket in buckets)
    if total != int(count["count"]):
        why = "the buckets of this histogram do not add up to its count"
        field, allowed = f"line {first}", count["count"]
        raise InputError(lines.source, field, why=why, found=total, allowed=allowed)
    return HistogramText(
        what=title["what"],
        count=total,
        mean_us=None if count["mean"].endswith("nan") else float(count["mean"]),
        min_us=float(least["min"]),
        max_us=float(least["max"]),
        buckets=tuple(buckets),
    )


# --- the file of `--report_interval_seconds`, by RocksDB's `ReporterAgent`

_REPORT_LINE = re.compile(r"(?P<elapsed>[0-9]+(?:\.[0-9]+)?),(?P<operations>[0-9]+)")


def follow_report() -> Follow:
    """Reads the lines of `--report_file`: seconds, and the operations since the line before.

    The header calls the latter `interval_qps`, but nobody divides them by the length of the step
    (`SleepAndReport`), which is longer than a second where the reporter came late.

    The program's memory at that moment is not in them. A line is skipped that the end of the
    program, or of the disk, cut off.
    """
    total = 0

    def read(line: str) -> tuple[float, int] | None:
        nonlocal total
        match = _REPORT_LINE.fullmatch(line)
        if match is None:
            return None
        total += int(match["operations"])
        return float(match["elapsed"]), total

    return follow_totals(read)
