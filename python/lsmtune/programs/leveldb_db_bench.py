"""How LevelDB's db_bench is called for one phase of a Workload.

Facts from `benchmarks/db_bench.cc` (`db/db_bench.cc` up to 1.22): it has no seed: thread n draws
the same numbers in every process, and up to 1.22 in every benchmark of one, so that reads would
follow the order in which keys were written; `--num` is the number of keys and
of writes of each thread, `--reads` of reads; keys are 16 decimal digits, with `--key_prefix` (from
1.23) more; it waits for no compactions and can leave out no log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lsmtune.driver.native_run import DATABASE
from lsmtune.errors import InputError
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.programs.db_bench import (
    DASHES,
    NAME_AND_MICROS,
    RATE_AND_MESSAGE,
    TIMED_TYPE,
    TITLE,
    WRITES,
    CommonLines,
    HistogramText,
    another_program,
    benchmark_of,
    engine_version,
    read_all,
    read_histogram,
)
from lsmtune.programs.output import (
    LineReader,
    cannot,
    check_closed_loop,
    check_durability,
    check_number_keys,
    leading_settle,
    performing,
)
from lsmtune.programs.program import (
    FoundProgram,
    Introduction,
    Observed,
    Plan,
    Program,
    Step,
    StepOutput,
    Told,
    build_told,
    exported_flags,
    latency_of,
    phase_measurement,
)

NAME = "leveldb-db_bench"
BENCHMARKS = (
    *("fillseq", "fillrandom", "overwrite", "deleterandom", "readseq", "readrandom"),
    *("readmissing", "readhot", "readwhilewriting", "seekrandom"),
)
# Every flag that `main` of db_bench.cc reads; the last three came with 1.23.
FLAGS = (
    *("benchmarks", "compression_ratio", "histogram", "use_existing_db", "reuse_logs", "num"),
    *("reads", "threads", "value_size", "write_buffer_size", "max_file_size", "block_size"),
    *("cache_size", "bloom_bits", "open_files", "db", "comparisons", "compression", "key_prefix"),
)
_COUNTED_BY_NUM = WRITES | {"deleterandom"}
_IN_ORDER = frozenset({"fillseq", "readseq"})
_KEY_DIGITS = 16
_INT_MAX = 2**31 - 1


def check(workload: Workload, _engine_name: str) -> None:
    """Raises InputError for the first thing in `workload` that db_bench cannot perform."""
    check_number_keys(NAME, workload)
    check_closed_loop(NAME, workload)
    check_durability(NAME, workload, (Durability.WAL,))
    if workload.page_cache is PageCache.DIRECT:
        raise cannot(NAME, "page_cache", found="direct", allowed="warm")
    if workload.key_bytes < _KEY_DIGITS:
        raise cannot(NAME, "key_bytes", found=workload.key_bytes, allowed=f"{_KEY_DIGITS} or more")
    if workload.num > _INT_MAX:
        raise cannot(NAME, "num", found=workload.num, allowed=f"at most {_INT_MAX}")
    if leading_settle(workload):
        raise cannot(NAME, "settle", why="nothing was written yet")
    for index, phase in performing(workload):
        _check_phase(workload, phase, benchmark_of(NAME, phase, BENCHMARKS, first=index == 0))
    _check_draws(workload)


def _check_draws(workload: Workload) -> None:
    """Refuses more than one phase that draws keys: they would all draw the same ones."""
    drawing = [phase for _, phase in performing(workload) if phase.operation not in _IN_ORDER]
    if len(drawing) > 1:
        first, last = drawing[0], drawing[-1]
        why = f"it has no seed, so that this would draw the keys of {first.name} in their order"
        allowed = "load=fillseq, or no other phase that draws keys"
        raise cannot(
            NAME, f"{last.name}: operation", found=last.operation, why=why, allowed=allowed
        )


def operations_of(workload: Workload, phase: Phase) -> int:
    """Operations of all threads together; of `readseq` where the database has so many keys."""
    whole = phase.operations_whole
    return workload.num * phase.threads if whole is None else whole


def arguments(workload: Workload, index: int, *, database: str) -> tuple[str, ...]:
    """The arguments that perform phase `index` of `workload`, without those of a Config.

    Raises what `check` raises.
    """
    phase = workload.phases[index]
    flags = {
        "benchmarks": benchmark_of(NAME, phase, BENCHMARKS, first=index == 0),
        "db": database,
        "use_existing_db": "0" if index == 0 else "1",
        "num": str(workload.num),
        "value_size": str(workload.value_bytes),
        "compression_ratio": repr(workload.compression_ratio),
        "threads": str(phase.threads),
        "histogram": "1",
    }
    if phase.operation not in _COUNTED_BY_NUM:
        flags["reads"] = str(operations_of(workload, phase) // phase.threads)
    if workload.key_bytes > _KEY_DIGITS:
        flags["key_prefix"] = str(workload.key_bytes - _KEY_DIGITS)
    return tuple(f"--{name}={value}" for name, value in flags.items())


def _check_phase(workload: Workload, phase: Phase, benchmark: str) -> None:
    if phase.duration_s is not None:
        raise cannot(NAME, f"{phase.name}: duration_s", why="it ends by its operations alone")
    if phase.seek_nexts:
        raise cannot(NAME, f"{phase.name}: seek_nexts", found=phase.seek_nexts, allowed="0")
    each, rest = divmod(operations_of(workload, phase), phase.threads)
    if rest:
        allowed = f"a multiple of its {phase.threads} threads"
        raise cannot(NAME, f"{phase.name}: operations", found=phase.operations, allowed=allowed)
    if benchmark in _COUNTED_BY_NUM and each != workload.num:
        allowed = f"num, {workload.num}, of each thread"
        raise cannot(NAME, f"{phase.name}: operations", found=each, allowed=allowed)


NO_SEED = "LevelDB's db_bench has no seed: it draws the same keys in every run"


# --- what LevelDB's db_bench prints
#
#     output      = { header | warning | benchmark | skipped | compactions | files | note }
#     benchmark   = name ":" x "micros/op;" [ x "MB/s" ] [ message ] [ histogram ] [ comparisons ]
#     message     = "(" found "of" num "found)" | "(" n "ops)" | other text
#     compactions = "Compactions" heading dashes { level files size time read write }
#     files       = { "--- level" n "---" { number ":" bytes "[" smallest ".." largest "]" } }
#
# The words are those of `benchmarks/db_bench.cc` (1.22 to 1.23). It prints neither operations per
# second nor the elapsed time: `throughput_ops_s` says how they follow.

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


# --- LevelDB's db_bench as a runner: one process for each phase, options by flags

NO_SETTLE = "LevelDB's db_bench cannot wait for compactions: reads start from a tree that is busy"


def _plan(request: RunRequest, _found: FoundProgram) -> Plan:
    workload = request.workload
    options = exported_flags(NAME, "leveldb", request.config)
    database = str(request.directory / DATABASE)
    steps = tuple(
        Step(
            arguments=(*arguments(workload, index, database=database), *options),
            phases=(index,),
            read=_reader(workload, index),
        )
        for index, _ in performing(workload)
    )
    settles = any(phase.kind is PhaseKind.SETTLE for phase in workload.phases)
    return Plan(steps, (NO_SEED, NO_SETTLE) if settles else (NO_SEED,))


def _reader(workload: Workload, index: int) -> Callable[[StepOutput], Observed]:
    phase = workload.phases[index]
    benchmark = benchmark_of(NAME, phase, BENCHMARKS, first=index == 0)

    def read(output: StepOutput) -> Observed:
        said = parse_leveldb_db_bench(output.errors() + "\n" + output.text(), NAME)
        result = said.result_of(benchmark)
        if result is None:
            why = said.skipped.get(benchmark, "printed no result")
            raise InputError(NAME, benchmark, why=why, found="; ".join(said.notes) or None)
        told = _told(result, workload, phase)
        measured = phase_measurement(phase, told, output, alone=True)
        return Observed({index: measured}, said.warnings, said.version, build_told(said.warnings))

    return read


def _told(result: BenchmarkResult, workload: Workload, phase: Phase) -> Told:
    timed = TIMED_TYPE[result.name]
    latency = latency_of(result.histogram) if result.histogram is not None else None
    # A histogram counts what was done, which is less where a scan came to the end of the keys.
    operations = operations_of(workload, phase) if latency is None else latency.count
    found = result.keys_found if phase.threads == 1 else None
    return Told(
        operations=operations,
        elapsed_s=result.elapsed_s(operations, phase.threads),
        throughput_ops_s=result.throughput_ops_s(phase.threads),
        latencies={} if latency is None else {timed: latency},
        own_type=timed,
        keys_found=found,
        keys_missing=None if found is None else operations - found,
        operations_by_type={timed: operations},
    )


def _introduced(text: str) -> Observed:
    said = parse_leveldb_db_bench(text, NAME)
    return Observed({}, said.warnings, said.version, build_told(said.warnings))


PROGRAM = Program(
    name=NAME,
    engines=("leveldb",),
    executables=("db_bench", "leveldb_db_bench", "db_bench.leveldb"),
    check=check,
    known_flags=FLAGS,
    note="operations per second follow from its micros/op; each phase is a process of its own",
    plan=_plan,
    introduction=Introduction(("--benchmarks=", "--num=1", "--db={database}"), _introduced),
)
