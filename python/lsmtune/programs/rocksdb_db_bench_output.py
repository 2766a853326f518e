"""What RocksDB's db_bench prints.

    output     = { header | warning | benchmark | average | stats | statistics | levels
                 | announcement | note }
    header     = name ":" value                  (`Keys:`, `RocksDB:`, ...)
    benchmark  = name ":" x "micros/op" n "ops/sec" [ x "seconds" n "operations" ] ";"
                 [ x "MB/s" ] [ message ] [ perf context ] { histogram }
    message    = "(" found "of" tried "found)" | "(" mixgraph's figures ")" | other text
    average    = name "[AVG" n "runs] :" ... | name "[MEDIAN" n "runs] :" ... | name "[CI95" ...

The words are those of `Stats::Report`, `CombinedStats` and `PrintHeader` of
`tools/db_bench_tool.cc`, releases 7.8 to 11; seconds and operations came with 7.0. Stats, tickers
and levels are RocksDB's own tables, rounded as they go: they are passed over. What belongs to no
rule is a note: kept, with its text.

A report (`--report_interval_seconds`, written by `ReporterAgent`) is a file of its own. It has a
line a step: `secs_elapsed,interval_qps`, the operations of the step divided by its length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lsmtune.programs.db_bench import (
    DASHES,
    NAME_AND_MICROS,
    NUMBER,
    RATE_AND_MESSAGE,
    TITLE,
    CommonLines,
    HistogramText,
    another_program,
    engine_version,
    read_all,
    read_histogram,
)
from lsmtune.programs.output import LineReader

HEADING = re.compile(r"secs_elapsed,interval_qps")
_ROW = re.compile(r"(?P<elapsed>\d+),(?P<rate>\d+)")


_HEADER = re.compile(
    r"(?P<name>RocksDB|Date|CPU|CPUCache|Keys|Values|Values Distribution|Entries|Prefix"
    r"|Keys per prefix|RawSize|FileSize|Write rate|Read rate|Compression|Compression manager"
    r"|Compression sampling rate|Memtablerep|Perf Level|DB path): *(?P<value>.*?) *"
)
_ANNOUNCEMENT = re.compile(
    r"Initializing RocksDB Options from .*|Integrated BlobDB: .*|waitforcompaction\(.*\): .*"
    r"|flush memtable|\.\.\. .*|# .*|"
)
_SET_SEED = re.compile(r"Set seed to (?P<seed>\d+) because --seed was 0")
_BENCHMARK = re.compile(
    rf"{NAME_AND_MICROS} (?P<rate>-?\d+) ops/sec"
    rf"(?: (?P<seconds>{NUMBER}) seconds (?P<operations>\d+) operations)?;{RATE_AND_MESSAGE}"
)
_FOUND = re.compile(r"\((?P<found>\d+) of (?P<tried>\d+) found\)\s*")
_MIXGRAPH = re.compile(
    r"\( Gets:(?P<gets>\d+) Puts:(?P<puts>\d+) Seek:(?P<seeks>\d+), reads (?P<reads>\d+) "
    rf"in (?P<found>\d+) found, avg size: (?P<value>{NUMBER}|-?nan) value, "
    rf"(?P<scan>{NUMBER}|-?nan) scan\)\s*"
)
_PERF_CONTEXT = "PERF_CONTEXT:"
_AVERAGE = re.compile(
    rf"(?P<name>\S+) \[AVG +(?P<runs>\d+) runs\] : (?P<rate>-?\d+) \(± (?P<half>-?\d+)\) ops/sec"
    rf"(?:; {NUMBER} ms/op)?(?:; +(?P<mb>{NUMBER}) \(± (?P<mb_half>{NUMBER})\) MB/sec)?"
)
_MEDIAN = re.compile(
    rf"(?P<name>\S+) \[MEDIAN (?P<runs>\d+) runs\] : (?P<rate>-?\d+) ops/sec"
    rf"(?:; +(?P<mb>{NUMBER}) MB/sec)?"
)
_INTERVAL95 = re.compile(r"\S+ \[CI95 \d+ runs\] : .*")
_REPEATING = re.compile(r"(?P<what>Warming up|Running) benchmark (?:by running|for) \d+ times")
# Where tables of stats, of levels and of tickers begin, which are RocksDB's own.
_STATS = re.compile(r"\*\* .+ \*\*|Level +Files +Size\(MB\)|STATISTICS:")


@dataclass(frozen=True)
class MixgraphFigures:
    """What mixgraph says of its operations; sizes in bytes, of a scan in entries."""

    gets: int
    puts: int
    seeks: int
    reads: int
    found: int
    value_bytes_mean: float
    scan_length_mean: float


@dataclass(frozen=True)
class BenchmarkResult:
    """One benchmark line and what belongs to it.

    `micros_per_operation` is the time of one thread. `elapsed_s` and `operations` are None before
    RocksDB 7.0. `keys_found` and `keys_tried` are those of one thread, which is all that db_bench
    says of them. `warmup`: it ran before those that count (`[W1]`).
    """

    name: str
    micros_per_operation: float
    throughput_ops_s: int
    elapsed_s: float | None
    operations: int | None
    mb_per_s: float | None
    keys_found: int | None = None
    keys_tried: int | None = None
    mixgraph: MixgraphFigures | None = None
    message: str = ""
    perf_context: Mapping[str, int] = field(default_factory=dict)
    histograms: tuple[HistogramText, ...] = ()
    warmup: bool = False


@dataclass(frozen=True)
class AverageResult:
    """Of several runs of a benchmark (`[X3]`): mean ± half a 95 % interval, and the median.

    db_bench prints the mean after each run, and both after the last one.
    """

    name: str
    runs: int
    throughput_ops_s: int
    half_width_ops_s: int | None
    median: bool


@dataclass(frozen=True)
class DbBenchOutput:
    """What was read. `headers` are the printed pairs; `warnings` lack their `WARNING: `."""

    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    benchmarks: tuple[BenchmarkResult, ...]
    averages: tuple[AverageResult, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> str | None:
        """RocksDB's version; None where stderr, on which it is printed, is not in the text."""
        return engine_version(self.headers, "RocksDB")

    def result_of(self, name: str) -> BenchmarkResult | None:
        """The last benchmark `name` that was no warmup."""
        named = [one for one in self.benchmarks if one.name == name and not one.warmup]
        return named[-1] if named else None


def parse_db_bench(text: str, source: str) -> DbBenchOutput:
    """What RocksDB's db_bench printed, stdout alone or with stderr.

    Raises InputError with the line for a result that is cut off or broken, and where there is
    neither a header nor a result: `text` is of another program then.
    """
    reader = _Reader(LineReader(text, source))
    read_all(reader.take_one)
    output = reader.output()
    if not output.benchmarks and not output.headers.keys() & {"RocksDB", "Memtablerep"}:
        allowed = "RocksDB's db_bench, `fillseq : 2.5 micros/op 400000 ops/sec ...`"
        raise another_program(text, source, allowed)
    return output


class _Reader:
    """The state of one parse: what has been read so far."""

    def __init__(self, lines: LineReader) -> None:
        self._lines = lines
        self._common = CommonLines(lines, _HEADER)
        self._benchmarks: list[BenchmarkResult] = []
        self._averages: list[AverageResult] = []
        self._seed: int | None = None
        self._in_stats = False
        self._warming_up = False

    def output(self) -> DbBenchOutput:
        return DbBenchOutput(
            headers=self._common.headers,
            warnings=tuple(self._common.warnings),
            benchmarks=tuple(self._benchmarks),
            averages=tuple(self._averages),
            skipped=self._common.skipped,
            seed=self._seed,
            notes=tuple(self._common.notes),
        )

    def take_one(self) -> bool:
        """Reads one rule; False at the end."""
        lines = self._lines
        line = lines.peek()
        if line is None:
            return False
        if (match := lines.take_if(_BENCHMARK)) is not None:
            self._benchmarks.append(self._benchmark(match))
            self._in_stats = False
        elif _STATS.fullmatch(line.text.strip()) is not None:
            lines.take()
            self._in_stats = True
        elif self._common.take() or self._take_short():
            pass
        elif self._in_stats:
            lines.take()
        else:
            self._common.take_note()
        return True

    def _take_short(self) -> bool:
        """Reads a rule of one line."""
        take = self._lines.take_if
        if (match := take(_SET_SEED)) is not None:
            self._seed = int(match["seed"])
        elif (match := take(_AVERAGE)) is not None:
            self._averages.append(_average(match, int(match["half"]), median=False))
        elif (match := take(_MEDIAN)) is not None:
            self._averages.append(_average(match, None, median=True))
        elif (match := take(_REPEATING)) is not None:
            self._warming_up = match["what"] == "Warming up"
        else:
            return any(take(rule) is not None for rule in (_ANNOUNCEMENT, DASHES, _INTERVAL95))
        return True

    def _benchmark(self, line: re.Match[str]) -> BenchmarkResult:
        message, perf_context = self._message(line["message"] or "")
        found, mixgraph = _FOUND.search(message), _MIXGRAPH.search(message)
        histograms: list[HistogramText] = []
        while (following := self._lines.peek()) is not None and TITLE.fullmatch(following.text):
            histograms.append(read_histogram(self._lines))
        return BenchmarkResult(
            name=line["name"],
            micros_per_operation=float(line["micros"]),
            throughput_ops_s=int(line["rate"]),
            elapsed_s=None if line["seconds"] is None else float(line["seconds"]),
            operations=None if line["operations"] is None else int(line["operations"]),
            mb_per_s=None if line["mb"] is None else float(line["mb"]),
            keys_found=None if found is None else int(found["found"]),
            keys_tried=None if found is None else int(found["tried"]),
            mixgraph=None if mixgraph is None else _mixgraph(mixgraph),
            message=message.strip(),
            perf_context=perf_context,
            histograms=tuple(histograms),
            warmup=self._warming_up,
        )

    def _message(self, text: str) -> tuple[str, dict[str, int]]:
        """The rest of a result, which may go on in the lines below it."""
        lines = self._lines
        if not text.endswith(_PERF_CONTEXT):
            if text.startswith("("):
                lines.take_if(re.compile(r" *"))  # this message ends with a line break of its own
            following = lines.peek()
            if following is None or following.text.strip() != _PERF_CONTEXT:
                return text, {}
            lines.take()
        values = lines.take()
        return text.removesuffix(_PERF_CONTEXT), _perf_context(values.text)


def _average(match: re.Match[str], half: int | None, *, median: bool) -> AverageResult:
    return AverageResult(match["name"], int(match["runs"]), int(match["rate"]), half, median)


def _mixgraph(match: re.Match[str]) -> MixgraphFigures:
    return MixgraphFigures(
        gets=int(match["gets"]),
        puts=int(match["puts"]),
        seeks=int(match["seeks"]),
        reads=int(match["reads"]),
        found=int(match["found"]),
        value_bytes_mean=float(match["value"]),
        scan_length_mean=float(match["scan"]),
    )


def _perf_context(text: str) -> dict[str, int]:
    """`name = count` pairs; what is said of each level (`name = 5@level0, ...`) is left out."""
    found: dict[str, int] = {}
    for pair in text.split(","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if equals and value.isdecimal():
            found[name] = int(value)
    return found
