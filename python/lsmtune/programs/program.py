"""What a program that people trust is to lsmtune: how it is called, and what it tells of a phase.

What a program does not tell is None in a PhaseMeasurement. A Config reaches a program in its own
spelling, by the exporters; their errors are put in the words of a run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lsmtune.engines.formats import export
from lsmtune.errors import InputError
from lsmtune.model.config import Build, OptionValue
from lsmtune.model.measurement import (
    IntermediateReport,
    Interval,
    Latency,
    PhaseMeasurement,
    RunError,
)
from lsmtune.model.metrics import LATENCIES, METRICS, REGISTRY
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload

# What no program reports of a phase, because none waits for what it left to flush and compact, and
# none counts what the engine did behind it.
NEVER_REPORTED = frozenset(metric.name for metric in REGISTRY if not metric.programs)


def phase_measurement(
    phase: Phase,
    output: StepOutput,
    *,
    alone: bool,
    operations: int,
    elapsed_s: float,
    throughput_ops_s: float,
    latencies: Mapping[str, Latency],
    keys_found: int | None,
    keys_missing: int | None,
    operations_by_type: Mapping[str, int] | None,
) -> PhaseMeasurement:
    """The measurement of `phase` by what a program says of it.

    `alone`: the process did nothing else, so that its processor time is that of the phase, with
    what opening and closing the database take. Elapsed time is the program's own figure. The
    latency of an only type is the phase's.
    """
    own = next(iter(latencies.values())) if len(latencies) == 1 else None
    own_latencies = {} if own is None else {name: getattr(own, name) for name in LATENCIES}
    return PhaseMeasurement(
        name=phase.name,
        kind=phase.kind.value,
        operation=phase.operation or ("mix" if phase.mix is not None else None),
        threads=phase.threads,
        operations=operations,
        elapsed_s=elapsed_s,
        drain_s=None,
        throughput_ops_s=throughput_ops_s,
        sustained_throughput_ops_s=None,
        cut_short=False,
        user_bytes_written=None,
        user_bytes_read=None,
        rss_bytes_max=output.rss_bytes_max,
        database_bytes=output.database_bytes,
        started_unix_us=output.started_unix_us,
        finished_unix_us=output.finished_unix_us,
        latencies=latencies,
        intervals=output.intervals,
        keys_found=keys_found,
        keys_missing=keys_missing,
        cpu_us_per_operation=output.cpu_s * 1e6 / operations if alone and operations else None,
        operations_by_type=operations_by_type,
        **own_latencies,
    )


def options_for(
    program: str,
    format_name: str,
    engine_name: str,
    options: Mapping[str, OptionValue],
    version: str | None = None,
) -> str:
    """`options` in a format of `program`. Raises InputError that names it and the option."""
    try:
        return export(format_name, engine_name, options, version=version, label="of a run")
    except InputError as error:
        error = error.but(source=f"--runner {program}")
        if error.field == "--format":
            raise error.but(field="options", found=None) from None
        raise error.but(field=f"options.{error.field}") from None


@dataclass(frozen=True)
class FoundProgram:
    """A program on this machine; `flags` are those it says it knows, empty where it does not."""

    name: str
    path: Path
    version: str | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepOutput:
    """What one process left: its output, and what was seen of it from outside.

    Times are microseconds since the epoch; `cpu_s` and `rss_bytes_max` are of the whole process.
    """

    stdout: Path
    stderr: Path
    started_unix_us: int
    finished_unix_us: int
    cpu_s: float
    rss_bytes_max: int | None
    database_bytes: int | None
    intervals: tuple[Interval, ...] = ()
    reported: Mapping[str, float] = field(default_factory=dict)

    def text(self) -> str:
        """All of stdout."""
        return self.stdout.read_text(encoding="utf-8", errors="replace")

    def errors(self) -> str:
        """All of stderr."""
        return self.stderr.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class Observed:
    """What a step's output says: its phases, by their places, and what to know of the program."""

    phases: Mapping[int, PhaseMeasurement]
    warnings: tuple[str, ...] = ()
    version: str | None = None
    build: Build | None = None
    reported: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Introduction:
    """How a program says what it is: the arguments that make it say so, and how that is read.

    `{database}` in an argument stands for a folder of its own.
    """

    arguments: tuple[str, ...]
    read: Callable[[str], Observed]


STDOUT = "stdout.log"  # what a process prints, in its folder

# Takes a line of a followed file, which tells nothing, an interval of the first phase, or what a
# program of the user's own measured: so far, or in the end.
Follow = Callable[[str], Interval | IntermediateReport | Mapping[str, float] | None]


def follow_totals(read: Callable[[str], tuple[float, int] | None]) -> Follow:
    """Follows lines of which `read` tells seconds and operations since the start of the phase."""
    done, before_s = 0, 0.0

    def follow(line: str) -> Interval | None:
        nonlocal done, before_s
        elapsed_s, total = read(line) or (0.0, 0)
        if elapsed_s <= before_s:
            return None  # where the clock was set back, they count to the next line that is later
        interval_s, operations = elapsed_s - before_s, total - done
        done, before_s = total, elapsed_s
        return Interval(elapsed_s, interval_s, operations, done, operations / interval_s, None)

    return follow


@dataclass(frozen=True)
class Step:
    """One process of a run, in a folder of its own, from which paths are named.

    Args:
        arguments: What follows the program, which a runner puts before them.
        phases: The places in the workload of the phases that it performs.
        read: Understands what it left. Raises InputError where it cannot.
        files: Are written into its folder before it starts, piece by piece.
        stdin: The one of `files` that it reads.
        follow: The files, STDOUT among them, that are read while it runs; what makes each Follow.
        folder: Its folder in the run's, or that itself where empty; from here on said by a runner.
        start_in: The folder to start in, where it is another.
        refusal: The error that stderr stands for, None unless the command line was refused.
        own: What it sets beside the flags in `arguments`: properties, and what else sets the same.
    """

    arguments: tuple[str, ...]
    phases: tuple[int, ...]
    read: Callable[[StepOutput], Observed]
    files: Mapping[str, Callable[[], Iterator[str]]] = field(default_factory=dict)
    stdin: str | None = None
    follow: Mapping[str, Callable[[], Follow]] = field(default_factory=dict)
    folder: str = ""
    start_in: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    refusal: Callable[[str], RunError | None] | None = None
    own: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The processes of a run, one after another on one database, and what to know beforehand."""

    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()


def settle_warnings(workload: Workload, always: str, no_settle: str) -> tuple[str, ...]:
    """What a program that settles nothing warns of: `no_settle` where a workload asks for it."""
    settles = any(phase.kind is PhaseKind.SETTLE for phase in workload.phases)
    return (always, no_settle) if settles else (always,)


def value_warnings(workload: Workload, values: str) -> tuple[str, ...]:
    """The warning of a program that writes `values`, which do not compress, where others would."""
    ratio = workload.compression_ratio
    ignored = f"{values}, which do not compress: compression_ratio {ratio:g} has no effect"
    return (ignored,) if ratio < 1 else ()


@dataclass(frozen=True)
class Program:
    """A program that people trust: what is known of it, and how it is called.

    A new program is one file with a `PROGRAM`, one line in `registry.PROGRAMS`, and one subject in
    the conformance suite.

    Args:
        executables: Names under which it is looked for on PATH; `{engine}` stands for the engine's.
        answer: What it alone says to `--help`, on either output; found anywhere in the text.
        check: Raises InputError for what of a workload it cannot perform on an engine.
        plan: How it performs a request. Raises InputError for what of the request's configuration
            the program has no spelling of.
        blind_to: Metrics that it does not report, beside `NEVER_REPORTED`, of the phase at a place
            of a workload.
        known_flags: Used where the program lists none.
        note: What to know when its figures stand beside those of others.
    """

    name: str
    engines: tuple[str, ...]
    executables: tuple[str, ...]
    answer: re.Pattern[str]
    check: Callable[[Workload, str], None]
    plan: Callable[[RunRequest, FoundProgram], Plan]
    blind_to: Callable[[Workload, int], frozenset[str]] = lambda _workload, _index: frozenset()
    known_flags: tuple[str, ...] = ()
    introduction: Introduction | None = None
    note: str = ""

    def check_engine(self, engine_name: str) -> None:
        """Raises InputError where the program does not work on that engine."""
        if engine_name not in self.engines:
            source, allowed = f"--runner {self.name}", ", ".join(self.engines)
            raise InputError(source, "--engine", found=engine_name, allowed=allowed)

    def unreported(self, workload: Workload, index: int) -> frozenset[str]:
        """The metrics of phase `index` of `workload` that this program cannot report."""
        return NEVER_REPORTED | self.blind_to(workload, index)

    def check_reported(
        self, metric: str, phase: str | None, workload: Workload, source: str, field: str = ""
    ) -> None:
        """Raises InputError where `metric` of a measure phase cannot be reported.

        `phase` None is the last one, as for an objective.
        """
        measured = [
            index
            for index, each in enumerate(workload.phases)
            if each.kind is PhaseKind.MEASURE and phase in (None, each.name)
        ]
        unreported = self.unreported(workload, measured[-1]) if measured else frozenset()
        if metric in unreported:
            why = f"{self.name} cannot tell it"
            allowed = ", ".join(each for each in METRICS if each not in unreported)
            raise InputError(source, field, found=metric, why=why, allowed=allowed)
