"""`lsmtune bench`: measure one configuration under one workload, by one runner or by all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lsmtune.cli.flags import (
    OPTION_FLAG,
    EngineOption,
    JsonOption,
    LibraryOption,
    LimitFlags,
    QuietOption,
    RepeatFlags,
    WorkloadFlags,
    WorkloadOption,
    command,
    config_of,
    flag,
    option,
    under_workload,
)
from lsmtune.cli.output import failure, print_json, print_result, print_view, warn
from lsmtune.errors import InputError, LsmtuneError, by_name, check_name
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.find import PROGRAM_FLAG
from lsmtune.programs.output import NATIVE
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import ARGUMENT_FLAG, RunnerChoice, chosen_program

if TYPE_CHECKING:
    from lsmtune.experiment.rounds import After
    from lsmtune.experiment.schedule import Arm

COMMAND = "bench"
ALL = "all"
RUNNER_FLAG = "--runner"
EXAMPLES = (
    "lsmtune bench --engine rocksdb --workload fillrandom -o write_buffer_size=4MiB",
    "lsmtune bench --engine leveldb --workload readrandom -w num=1000000 --repeat 5 --json",
    "lsmtune bench --engine leveldb -P workloada -P leveldb.properties -p threadcount=4",
    "lsmtune bench --engine rocksdb --workload fillrandom --runner rocksdb-db_bench",
    "lsmtune bench --engine rocksdb --workload ycsb-a --runner all --repeat 5 --json",
)
app = typer.Typer()

RUNNERS = (NATIVE, *PROGRAMS, ALL)
_RUNNERS = "native (lsmtune's driver), rocksdb-db_bench, leveldb-db_bench, ycsb-cpp"
OneRunnerOption = Annotated[
    str, option(f"{RUNNER_FLAG} NAME", f"{_RUNNERS} or ekvsb.", known=RUNNERS[:-1])
]
ProgramOption = Annotated[
    Path | None, option(f"{PROGRAM_FLAG} PATH", "The program of --runner, if not on PATH.")
]


@dataclass(frozen=True)
class RunnerFlags:
    """What performs the runs."""

    runner: str = flag(
        f"{RUNNER_FLAG} NAME",
        f"{_RUNNERS}, ekvsb, or all: each of them side by side.",
        NATIVE,
        known=RUNNERS,
    )
    program: ProgramOption = None
    program_argument: list[str] | None = flag(
        f"{ARGUMENT_FLAG} TEXT",
        "An argument that the program is given besides, again for each.",
    )

    def check(self, *, several: bool = True) -> None:
        """Raises InputError for a runner that is none, and for flags that go with no program."""
        check_name(self.runner, RUNNERS if several else RUNNERS[:-1], RUNNER_FLAG)
        if self.runner in (NATIVE, ALL):
            given = {PROGRAM_FLAG: self.program, ARGUMENT_FLAG: self.program_argument}
            for name, value in given.items():
                if value:
                    why = f"has no effect with {RUNNER_FLAG} {self.runner}"
                    raise InputError(name, why=why, allowed=f"{RUNNER_FLAG} of one program")


@dataclass(frozen=True)
class Bench:
    """What to measure, and how often and where.

    `parameters` are those of the workload, none of one from a workload file.
    """

    config: Config
    workload: Workload
    parameters: Mapping[str, Any]
    limits: Limits
    repeats: RepeatFlags


@command(app, COMMAND, EXAMPLES)
def _bench(
    *,
    engine: EngineOption,
    workload: WorkloadOption = None,
    library: LibraryOption = None,
    given: WorkloadFlags,
    repeats: RepeatFlags,
    limits: LimitFlags,
    runners: RunnerFlags,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure one configuration under one workload."""
    runners.check()
    choice = given.choice(workload, engine)
    config = under_workload(config_of(repeats.option), choice, engine, OPTION_FLAG)
    bench = Bench(config, choice.workload, choice.parameters, limits.limits, repeats)
    if runners.runner == ALL:
        choices, missing = all_runners(engine, library, choice.workload)
        _compare(bench, choices, missing, quiet=quiet, as_json=as_json)
    else:
        one = one_runner(runners, engine, library, choice.workload)
        measure_one(bench, one, quiet=quiet, as_json=as_json)


# --- what performs the runs


def native_runner(
    engine: str, library: Path | None, place: Callable[[str], tuple[str, str]] | None = None
) -> RunnerChoice:
    """lsmtune's driver. Raises InputError when there is none, or no library of `engine`.

    `place` says where a file has the field that states the library, in place of the flag.
    """
    from lsmtune.driver.conversation import find_driver
    from lsmtune.driver.library_facts import chosen_engine
    from lsmtune.driver.native import NativeRunner

    driver = find_driver()
    try:
        identity, warnings = chosen_engine(engine, library, driver)
    except InputError as error:
        if place is None or error.source != "--library":
            raise
        source, field = place("engine.library")
        allowed = error.allowed.replace("--engine ", "engine.name: ")
        raise error.but(source=source, field=field, allowed=allowed) from None
    return RunnerChoice(NATIVE, NativeRunner(driver), identity, warnings)


def program_runner(flags: RunnerFlags, engine: str, workload: Workload) -> RunnerChoice:
    """The program that is named.

    Raises InputError where it is not found, for an argument that it does not know or that lsmtune
    sets itself, and for what it cannot perform of `workload` on `engine`.
    """
    program = by_name(PROGRAMS, flags.runner, RUNNER_FLAG)
    program.check_engine(engine)
    program.check(workload, engine)
    arguments = tuple(flags.program_argument or ())
    return chosen_program(program, engine, flags.program, arguments, (workload,))


def one_runner(
    flags: RunnerFlags, engine: str, library: Path | None, workload: Workload
) -> RunnerChoice:
    """The one runner that is named: lsmtune's driver, or a program.

    Raises what `native_runner` and `program_runner` raise, and InputError for a library beside a
    program.
    """
    if flags.runner == NATIVE:
        return native_runner(engine, library)
    if library is not None:
        why = f"{flags.runner} carries an engine of its own"
        raise InputError("--library", found=str(library), why=why, allowed="--program PATH")
    return program_runner(flags, engine, workload)


def all_runners(
    engine: str, library: Path | None, workload: Workload
) -> tuple[list[RunnerChoice], dict[str, str]]:
    """lsmtune's driver and the programs that can perform `workload`; why not, by name of others."""
    choices = [native_runner(engine, library)]
    missing: dict[str, str] = {}
    for name in PROGRAMS:
        try:
            choices.append(program_runner(RunnerFlags(name), engine, workload))
        except InputError as error:
            missing[name] = str(error).removeprefix(f"{RUNNER_FLAG} {name}: ")
    return choices, missing


# --- the runs, and what is said of them


def measure_one(
    bench: Bench, choice: RunnerChoice, *, quiet: bool, as_json: bool, source: str = COMMAND
) -> None:
    """Measure with one runner, and print what it found.

    Raises where a run did not end well, and names the command `source`.
    """
    from lsmtune.cli.bench_result import bench_document, bench_view

    warnings = [*choice.warnings, *_doubtful(bench, choice)]
    measurements = measure(bench, [choice], quiet=quiet)[choice.name]
    failed = _failed(measurements, source)
    if as_json:
        document = bench_document(measurements, bench.workload, bench.parameters)
        print_json(document | {"warnings": warnings}, failed)
    elif measurements[-1].outcome is not Outcome.INVALID:
        print_view(bench_view(measurements, bench.workload, bench.parameters, warnings))
    if failed is not None:
        raise failed


def _compare(
    bench: Bench,
    choices: Sequence[RunnerChoice],
    missing: dict[str, str],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """Each runner in turns; one whose program takes no such run is missing, with what it said.

    Databases are settled by lsmtune's own driver while they are there, so that bytes compare.
    """
    from lsmtune.cli.bench_result import build_warnings, compare_document, compare_view
    from lsmtune.experiment.rounds import settled_bytes

    native = choices[0]
    warnings = [line for choice in choices for line in choice.warnings]
    warnings += [*build_warnings(choices), *_doubtful(bench, native)]
    settled: dict[str, list[int]] = {}
    unsettled: dict[str, str] = {}

    def settle(
        stop: threading.Event, arm: Arm, request: RunRequest, measurement: Measurement
    ) -> None:
        if measurement.outcome is not Outcome.OK:
            return
        size, why = settled_bytes(native.runner, native.engine, request, stop)
        if size is None:
            unsettled[arm.label] = why
        else:
            settled.setdefault(arm.label, []).append(size)

    measured = measure(bench, choices, settle, quiet=quiet)
    lead = "lsmtune's driver could not settle the database of"
    warnings += [f"{lead} {name}: {why}" for name, why in unsettled.items()]
    for name, runs in list(measured.items()):
        error = runs[-1].error
        if name != NATIVE and runs[-1].outcome is Outcome.INVALID and error is not None:
            missing[name] = error.message
            del measured[name]
    choices = [each for each in choices if each.name in measured]
    failed = _failed([run for runs in measured.values() for run in runs], COMMAND)
    document = compare_document(choices, measured, settled, warnings, missing)
    view = compare_view(choices, measured, settled, warnings, missing)
    print_result(document, view, failed, as_json=as_json)


def _failed(measurements: Sequence[Measurement], source: str) -> LsmtuneError | None:
    """The error for the first run that did not end well."""
    bad = (each for each in measurements if each.outcome is not Outcome.OK)
    return next((failure(each, source) for each in bad), None)


def _doubtful(bench: Bench, choice: RunnerChoice) -> list[str]:
    """Warns of what speaks against the configuration, and returns these lines.

    Anything may be measured; who reads the measurement must know what it is of.
    """
    from lsmtune.engines.safety import doubts

    durability = bench.workload.durability
    lines = doubts(choice.engine, bench.config, durability, bench.limits, OPTION_FLAG).reasons()
    warn(lines)
    return lines


def measure(
    bench: Bench,
    choices: Sequence[RunnerChoice],
    after: After | None = None,
    *,
    quiet: bool = False,
) -> dict[str, list[Measurement]]:
    """One Measurement per repeat and runner, the runners in turns, shown while it lasts.

    Raises InterruptedByUserError at Ctrl-C, which ends the run in order: as an exception it could
    come while a program is being started, and leave it behind.
    """
    from lsmtune.cli.live import bench_display
    from lsmtune.cli.rounds_progress import BenchProgress
    from lsmtune.experiment.rounds import measure_repeats
    from lsmtune.experiment.schedule import Arm
    from lsmtune.machine.interrupts import interrupted, stop_on_interrupt

    first, parent = bench.repeats.seed, bench.repeats.directory or Path.cwd()
    seeds = range(first, first + bench.repeats.repeat)
    progress = BenchProgress(bench.workload, len(seeds), several=len(choices) > 1)
    arms = [(each.runner, Arm(each.engine, bench.config, each.name)) for each in choices]
    with bench_display(progress, quiet=quiet), stop_on_interrupt(lambda _line: None) as stop:
        measured = measure_repeats(
            arms, bench.workload, bench.limits, seeds, parent, progress, stop, after
        )
    if stop.is_set():
        raise interrupted(None)
    return measured
