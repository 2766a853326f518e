"""What performs the runs of `bench`: lsmtune's driver, a program people trust, or all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.choices import choose_workload
from lsmtune.cli.flags import (
    DEADLINE_DEFAULT,
    DISK_DEFAULT,
    MEMORY_DEFAULT,
    OPTION_FLAG,
    DatabasesDirOption,
    DeadlineOption,
    DiskOption,
    EngineOption,
    JsonOption,
    LibraryOption,
    MemoryOption,
    OptionSetOption,
    PropertiesOption,
    PropertyOption,
    RepeatOption,
    SeedOption,
    WorkloadOption,
    WorkloadSetOption,
    config_of,
    limits_of,
)
from lsmtune.driver.messages import Message
from lsmtune.driver.runner import Runner
from lsmtune.engines.workload_options import with_page_cache
from lsmtune.errors import InputError, nearest_name
from lsmtune.experiment.observer import Observer
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.programs.output import NATIVE
from lsmtune.programs.registry import PROGRAMS
from lsmtune.workloads.choice import WORKLOAD_FLAG

if TYPE_CHECKING:
    from lsmtune.experiment.repeats import After
    from lsmtune.experiment.schedule import Arm, Slot

ALL = "all"
RUNNER_FLAG = "--runner"
PROGRAM_FLAG = "--program"
ARGUMENT_FLAG = "--program-argument"


def _names() -> list[str]:
    return [NATIVE, *PROGRAMS, ALL]


RunnerOption = Annotated[
    str,
    typer.Option(
        RUNNER_FLAG,
        metavar="NAME",
        help="native (lsmtune's driver), rocksdb-db_bench, leveldb-db_bench, ycsb-cpp, ekvsb, "
        "or all: each of them side by side.",
        autocompletion=_names,
    ),
]
OneRunnerOption = Annotated[
    str,
    typer.Option(
        RUNNER_FLAG,
        metavar="NAME",
        help="native (lsmtune's driver), rocksdb-db_bench, leveldb-db_bench, ycsb-cpp or ekvsb.",
        autocompletion=lambda: [NATIVE, *PROGRAMS],
    ),
]
ProgramOption = Annotated[
    Path | None,
    typer.Option(PROGRAM_FLAG, metavar="PATH", help="The program of --runner, if not on PATH."),
]
ProgramArgumentOption = Annotated[
    list[str] | None,
    typer.Option(
        ARGUMENT_FLAG,
        metavar="TEXT",
        help="An argument that the program is given besides, again for each.",
    ),
]


@dataclass(frozen=True)
class Asked:
    """What the flags say: the runner's name, the program's path, further arguments for it."""

    runner: str = NATIVE
    program: Path | None = None
    arguments: tuple[str, ...] = ()

    def check(self, *, several: bool = True) -> None:
        """Raises InputError for a runner that is none, and for flags that go with no program.

        `several`: whether it may be all of them.
        """
        names = [name for name in _names() if several or name != ALL]
        if self.runner not in names:
            nearest, allowed = nearest_name(self.runner, names), ", ".join(names)
            raise InputError(RUNNER_FLAG, found=self.runner, allowed=allowed, nearest=nearest)
        if self.runner in (NATIVE, ALL):
            stray = PROGRAM_FLAG if self.program is not None else ""
            stray = stray or (ARGUMENT_FLAG if self.arguments else "")
            if stray:
                why = f"has no effect with {RUNNER_FLAG} {self.runner}"
                raise InputError(stray, why=why, allowed=f"{RUNNER_FLAG} of one program")


@dataclass(frozen=True)
class RunnerChoice:
    """One way to perform the runs; `warnings` are what to know of it, `note` of its figures."""

    name: str
    runner: Runner
    engine: EngineIdentity
    warnings: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Missing:
    """A runner that takes no part, and why."""

    runner: str
    why: str


@dataclass(frozen=True)
class Arms:
    """The runners of a comparison, lsmtune's own first, and those that take no part."""

    arms: tuple[RunnerChoice, ...]
    missing: tuple[Missing, ...] = ()


def native_runner(engine: str, library: Path | None) -> RunnerChoice:
    """lsmtune's driver. Raises InputError when there is none, or no library of `engine`."""
    from lsmtune.driver.conversation import find_driver
    from lsmtune.driver.library_facts import chosen_engine
    from lsmtune.driver.native import NativeRunner

    driver = find_driver()
    identity, warnings = chosen_engine(engine, library, driver)
    return RunnerChoice(NATIVE, NativeRunner(driver), identity, warnings)


def program_runner(asked: Asked, engine: str, workload: Workload) -> RunnerChoice:
    """The program that `asked` names.

    Raises InputError where it is not found or does not know an argument, and for what it cannot
    perform of `workload` on `engine`.
    """
    from lsmtune.programs.find import check_arguments, find_program, introduced
    from lsmtune.programs.registry import PROGRAMS
    from lsmtune.programs.runner import ProgramRunner

    program = PROGRAMS[asked.runner]
    program.check_engine(engine)
    program.check(workload, engine)
    found = find_program(program, engine, asked.program)
    check_arguments(program, found, asked.arguments, ARGUMENT_FLAG)
    said = introduced(program, found)
    warnings = tuple(f"{program.name}: {line}" for line in said.warnings)
    identity = EngineIdentity(engine, said.version, str(found.path))
    if said.build is not None:
        identity = EngineIdentity(engine, said.version, str(found.path), said.build)
    runner = ProgramRunner(program, found, asked.arguments)
    return RunnerChoice(program.name, runner, identity, warnings, program.note)


def one_runner(asked: Asked, engine: str, library: Path | None, workload: Workload) -> RunnerChoice:
    """The one runner that `asked` names: lsmtune's driver, or a program.

    Raises what `native_runner` and `program_runner` raise, and InputError for a library beside a
    program.
    """
    if asked.runner == NATIVE:
        return native_runner(engine, library)
    if library is not None:
        why = f"{asked.runner} carries an engine of its own"
        raise InputError("--library", found=str(library), why=why, allowed="--program PATH")
    return program_runner(asked, engine, workload)


def all_runners(engine: str, library: Path | None, workload: Workload) -> Arms:
    """lsmtune's driver and every program that can perform `workload` on `engine`."""
    arms = [native_runner(engine, library)]
    missing: list[Missing] = []
    for name in PROGRAMS:
        try:
            arms.append(program_runner(Asked(name), engine, workload))
        except InputError as error:
            missing.append(Missing(name, _why(error, name)))
    return Arms(tuple(arms), tuple(missing))


def _why(error: InputError, name: str) -> str:
    return str(error).removeprefix(f"{RUNNER_FLAG} {name}: ")


# --- `lsmtune bench`: measure one configuration under one workload.

COMMAND = "bench"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune bench --engine rocksdb --workload fillrandom -o write_buffer_size=4MiB",
        "lsmtune bench --engine leveldb --workload readrandom -w num=1000000 --repeat 5 --json",
        "lsmtune bench --engine leveldb -P workloada -P leveldb.properties -p threadcount=4",
        "lsmtune bench --engine rocksdb --workload fillrandom --runner rocksdb-db_bench",
        "lsmtune bench --engine rocksdb --workload ycsb-a --runner all --repeat 5 --json",
    )
)


@dataclass(frozen=True)
class Bench:
    """What to measure: one run for each of `seeds`, its database under `parent`."""

    config: Config
    workload: Workload
    limits: Limits
    seeds: Sequence[int]
    parent: Path


def register(app: typer.Typer) -> None:
    """Add the `bench` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_bench)


def _bench(
    engine: EngineOption,
    workload: WorkloadOption = None,
    library: LibraryOption = None,
    workload_set: WorkloadSetOption = None,
    properties: PropertiesOption = None,
    property_set: PropertyOption = None,
    option: OptionSetOption = None,
    seed: SeedOption = 1,
    repeat: RepeatOption = 1,
    directory: DatabasesDirOption = None,
    deadline: DeadlineOption = DEADLINE_DEFAULT,
    memory: MemoryOption = MEMORY_DEFAULT,
    disk: DiskOption = DISK_DEFAULT,
    runner: RunnerOption = NATIVE,
    program: ProgramOption = None,
    program_argument: ProgramArgumentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure one configuration under one workload."""
    asked = Asked(runner, program, tuple(program_argument or ()))
    asked.check()
    choice = choose_workload(workload, workload_set, properties, property_set, engine)
    chosen = choice.workload
    config = choice.config(config_of(option), engine, OPTION_FLAG)
    config = with_page_cache(config, engine, chosen.page_cache, WORKLOAD_FLAG)
    limits = limits_of(deadline, memory, disk)
    seeds = range(seed, seed + repeat)
    bench = Bench(config, chosen, limits, seeds, directory or Path.cwd())
    if asked.runner == ALL:
        _compare(bench, all_runners(engine, library, chosen), as_json=as_json)
        return
    measure_one(bench, one_runner(asked, engine, library, chosen), as_json=as_json)


def _doubtful(bench: Bench, arm: RunnerChoice) -> list[str]:
    """What speaks against the configuration, said at once."""
    from lsmtune.engines.safety import doubts

    # A measurement may be of anything; who reads it must know what it is of.
    durability = bench.workload.durability
    found = doubts(arm.engine, bench.config, durability, bench.limits, OPTION_FLAG).reasons()
    for warning in found:
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    return found


def measure_one(bench: Bench, arm: RunnerChoice, *, as_json: bool) -> None:
    """Measure with one runner, and print what it found. Raises where a run did not end well."""
    from lsmtune.cli.bench_result import bench_document, bench_view
    from lsmtune.cli.output import failure

    warnings = [*arm.warnings, *_doubtful(bench, arm)]
    measurements = measure(bench, [arm])[arm.name]
    if as_json:
        document = bench_document(measurements, bench.workload) | {"warnings": warnings}
        typer.echo(json.dumps(document, indent=2))
    elif measurements[-1].outcome is not Outcome.INVALID:
        _print(bench_view(measurements, bench.workload, warnings))
    for measurement in measurements:
        if measurement.outcome is not Outcome.OK:
            raise failure(measurement, COMMAND)


def _compare(bench: Bench, arms: Arms, *, as_json: bool) -> None:
    """Each runner in turns; one whose program takes no such run is missing, with what it said."""
    from lsmtune.cli.bench_compare import build_warnings, compare_document, compare_view
    from lsmtune.cli.output import failure

    native = arms.arms[0]
    warnings = [line for arm in arms.arms for line in arm.warnings]
    warnings += [*build_warnings(arms.arms), *_doubtful(bench, native)]
    settling = _Settling(native)
    measured = measure(bench, arms.arms, settling.after)
    warnings += settling.warnings()
    settled = settling.found
    missing = list(arms.missing)
    for name, runs in list(measured.items()):
        error = runs[-1].error
        if name != NATIVE and runs[-1].outcome is Outcome.INVALID and error is not None:
            missing.append(Missing(name, error.message))
            del measured[name]
    if as_json:
        typer.echo(
            json.dumps(compare_document(arms, measured, settled, warnings, missing), indent=2)
        )
    else:
        _print(compare_view(arms, measured, settled, warnings, missing))
    for measurement in (run for runs in measured.values() for run in runs):
        if measurement.outcome is not Outcome.OK:
            raise failure(measurement, COMMAND)


@dataclass
class _Settling:
    """Settles what each run left by lsmtune's own driver, `native`, and keeps its bytes."""

    native: RunnerChoice
    found: dict[str, list[int]] = field(default_factory=dict)
    why_not: dict[str, str] = field(default_factory=dict)

    def after(self, arm: Arm, request: RunRequest, measurement: Measurement) -> None:
        """Settles the database of a run that ended well, while it is there."""
        from lsmtune.cli.bench_compare import settled_bytes

        if measurement.outcome is not Outcome.OK:
            return
        size, why = settled_bytes(self.native.runner, self.native.engine, request)
        if size is None:
            self.why_not[arm.label] = why
        else:
            self.found.setdefault(arm.label, []).append(size)

    def warnings(self) -> list[str]:
        """Whose databases could not be settled, and why."""
        lead = "lsmtune's driver could not settle the database of"
        return [f"{lead} {name}: {why}" for name, why in self.why_not.items()]


class _Progress(Observer):
    """What the display shows: the run that is on, by which runner, and the how manieth it is."""

    def __init__(self, bench: Bench, runners: Sequence[RunnerChoice]) -> None:
        from lsmtune.cli.tune_progress import RunProgress

        self.run = RunProgress(bench.workload)
        self.title = ""
        self._bench = bench
        self._several = len(runners) > 1

    def run_started(self, slot: Slot, arm: Arm, workload: Workload) -> None:
        """A run begins."""
        self.run.restart(workload)
        by = f" by {arm.label}" if arm.label != NATIVE or self._several else ""
        number = f"run {slot.repeat + 1} of {len(self._bench.seeds)}"
        self.title = f"{arm.engine.name} {workload.name}{by}, {number}"

    def run_message(self, message: Message) -> None:
        """The driver said something."""
        self.run.message(message)


def measure(
    bench: Bench, runners: Sequence[RunnerChoice], after: After | None = None
) -> dict[str, list[Measurement]]:
    """One Measurement per seed and runner, the runners in turns, shown while it lasts."""
    from lsmtune.cli.live import bench_display
    from lsmtune.experiment.repeats import measure_repeats
    from lsmtune.experiment.schedule import Arm

    progress = _Progress(bench, runners)
    arms = [(each.runner, Arm(each.engine, bench.config, each.name)) for each in runners]
    with bench_display(progress.run, lambda: progress.title):
        return measure_repeats(
            arms, bench.workload, bench.limits, bench.seeds, bench.parent, progress, after
        )


def _print(view: object) -> None:
    import sys

    from rich.console import Console

    # A pipe has no width of its own; whole lines are what a reader there wants.
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(view)
