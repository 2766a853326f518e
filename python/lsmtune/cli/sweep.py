"""`lsmtune sweep`: a grid of workload parameters and option values, laid side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import (
    OPTION_FLAG,
    JsonOption,
    LibraryOption,
    LimitFlags,
    OptionSetOption,
    QuietOption,
    WorkloadSetOption,
    command,
    flag,
)
from lsmtune.cli.output import failure, print_json, print_result, print_view, warn
from lsmtune.errors import InputError, InterruptedByUserError, LsmtuneError, nearest_name
from lsmtune.model.request import FIRST_SEED_MAX
from lsmtune.model.text import is_there
from lsmtune.workloads.choice import WORKLOAD_FLAG, assignments, option_of, options_of

if TYPE_CHECKING:
    from lsmtune.driver.runner import Runner
    from lsmtune.experiment.store import StoredMeasurement
    from lsmtune.experiment.sweep import Axis, Sweep
    from lsmtune.experiment.sweep_grid import GridCell
    from lsmtune.model.config import EngineIdentity
    from lsmtune.model.measurement import Measurement

AXIS_FLAG = "--axis"
AXIS_ALLOWED = "NAME=VALUE,VALUE or option:NAME=VALUE,VALUE"
_OPTION_PREFIX = "option:"
EXAMPLES = (
    "lsmtune sweep --engine leveldb --workload fillseq,fillrandom,readseq,readrandom "
    "-w num=200000 --axis key_bytes=16,32,64 --axis value_bytes=100,200,400 --repeat 3",
    "lsmtune sweep --engine rocksdb --workload fillrandom "
    "--axis option:write_buffer_size=1MiB,4MiB,16MiB --dir buffers",
    "lsmtune sweep rf5 --plan",
    "lsmtune sweep my-sweep.yaml --repeat 5 --json",
    "Every cell runs once per round, in an order of the round's own. Ctrl-C keeps what was "
    "done, and the same command goes on, also with more --repeat.",
    "DIR/result has sweep.html, sweep.md, sweep.csv, sweep-runs.csv and sweep.json.",
)
app = typer.Typer()


@dataclass(frozen=True)
class SweepFlags:
    """What is measured; None where a flag was not given, and the file says it."""

    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A sweep file (YAML), or rf5.")
    ] = None
    engine: str | None = flag("--engine NAME", "The engine; that of FILE unless given.")
    library: LibraryOption = None
    workload: list[str] | None = flag(
        "--workload NAME,NAME", "Workloads, names or files, with commas between."
    )
    axis: list[str] | None = flag(
        f"{AXIS_FLAG} NAME=V,V",
        "A workload parameter and its values, or option:NAME=V,V; again for each axis.",
    )
    workload_set: WorkloadSetOption = None
    option: OptionSetOption = None
    repeat: int | None = flag(
        "--repeat N", "Rounds; 3 unless FILE says otherwise.", number=(1, 1000)
    )
    seed: int | None = flag(
        "--seed N",
        "All randomness follows from it; 1 unless FILE says otherwise.",
        number=(0, FIRST_SEED_MAX),
    )
    directory: Path | None = flag(
        "--dir DIR", "Where the runs are kept; sweep.lsmtune, or beside FILE, unless given."
    )
    no_reuse: bool = flag("--no-reuse", "Load a database for every run, and copy none.", False)
    plan: bool = flag("--plan", "Show the cells and the time left, and run nothing.", False)


@command(app, "sweep", EXAMPLES)
def _sweep(
    given: SweepFlags, limits: LimitFlags, quiet: QuietOption = False, as_json: JsonOption = False
) -> None:
    """Measure a grid of workload parameters and option values."""
    from lsmtune.cli.bench import native_runner
    from lsmtune.cli.rounds_progress import plan_document, plan_view, stored_runs
    from lsmtune.experiment.folder import default_folder
    from lsmtune.experiment.sweep_grid import grid
    from lsmtune.experiment.sweep_tables import summarise
    from lsmtune.report.sweep import document, sweep_document, write_sweep

    sweep = sweep_of(given, limits)
    # Beside the file; without one in sweep.lsmtune, here.
    folder = given.directory or default_folder(Path(given.file or "sweep"))
    of_file = given.library is None and sweep.library is not None
    by = native_runner(sweep.engine.name, sweep.library, sweep.place if of_file else None)
    cells = grid(sweep, by.engine)
    if given.plan:
        # Rounds that an earlier command asked for beyond these are no part of the plan.
        stored = stored_runs(folder, {cell.name for cell in cells})
        planned = sweep, cells, [run for run in stored if run.round < sweep.repeats], folder
        print_result(plan_document(*planned), plan_view(*planned), as_json=as_json)
        return
    doubtful = [*by.warnings, *_doubts(sweep, by.engine, cells)]
    warn(doubtful)
    runs = _perform(sweep, cells, folder, by.runner, quiet=quiet)
    result = summarise(sweep, cells, runs, [*doubtful, *_conditions(cells, runs)])
    failure: LsmtuneError | None = None
    if result.runs < result.runs_wanted:
        done = f"{result.runs} of {result.runs_wanted} runs are kept in {folder}"
        failure = InterruptedByUserError(f"interrupted; {done}")
    elif result.failures:
        bad = len(result.failures)
        failure = LsmtuneError(f"sweep: {bad} of {result.runs} runs did not end well")
    if result.runs:
        files = [str(file) for file in write_sweep(result, folder / "result")]
        if as_json:
            print_json(document(result) | {"files": files}, failure)
        else:
            print_view(sweep_document(result))
            typer.echo(f"written: {', '.join(files)}")
    if failure is not None:
        raise failure


# --- the Sweep that the flags state, alone or on top of a file


def sweep_of(given: SweepFlags, limits: LimitFlags) -> Sweep:
    """The Sweep of the file, the built-in or the flags. Raises InputError for what is none."""
    sweep = _of_flags(given) if given.file is None else _of_file(given, given.file)
    engine, databases = sweep.engine, sweep.databases
    if given.library:
        engine = replace(engine, library=str(given.library))
    if given.no_reuse:
        databases = replace(databases, reuse=False)
    return replace(
        sweep,
        engine=engine,
        repeats=sweep.repeats if given.repeat is None else given.repeat,
        seed=sweep.seed if given.seed is None else given.seed,
        databases=databases,
        limits=limits.over(sweep.limits),
    )


def _of_file(given: SweepFlags, name: str) -> Sweep:
    """A built-in sweep or a file, with what `-w`, `-o` and `--engine` change of it."""
    from lsmtune.experiment.sweep import BUILT_IN, SweepEngine, built_in, load_sweep

    for source, texts in (("--workload", given.workload), (AXIS_FLAG, given.axis)):
        if texts:
            why = f"has no effect beside {name}, which has its own"
            raise InputError(source, found=texts[0], why=why)
    path = Path(name)
    if name in BUILT_IN:
        sweep = built_in(name)
    elif not path.suffix and not is_there(path):
        allowed, nearest = f"a sweep file, or {', '.join(BUILT_IN)}", nearest_name(name, BUILT_IN)
        raise InputError("sweep", found=name, allowed=allowed, nearest=nearest)
    else:
        sweep = load_sweep(path)
    parameters = assignments(WORKLOAD_FLAG, given.workload_set)
    options = options_of(OPTION_FLAG, given.option)
    if given.engine is not None and given.engine != sweep.engine.name:
        # A library of the file is of the file's engine.
        sweep = replace(sweep, engine=SweepEngine(given.engine))
    stated = {f"workload.{name}" for name in parameters} | {f"options.{name}" for name in options}
    of_file = sweep.place
    return replace(
        sweep,
        parameters={**sweep.parameters, **parameters},
        options={**sweep.options, **options},
        place=lambda at: _flag_place(at) if at in stated else of_file(at),
    )


def _of_flags(given: SweepFlags) -> Sweep:
    from lsmtune.experiment.sweep import Sweep, SweepEngine, SweepWorkload

    for source, value, what in (
        ("--engine", given.engine, "an engine, or name a sweep file"),
        ("--workload", given.workload, "a workload, or several with commas between"),
        (AXIS_FLAG, given.axis, AXIS_ALLOWED),
    ):
        if not value:
            raise InputError(source, why="is missing", allowed=what)
    names = [name.strip() for text in given.workload or () for name in text.split(",")]
    return Sweep(
        version=1,
        engine=SweepEngine(given.engine or ""),
        workloads=tuple(SweepWorkload(name) for name in names),
        axes=tuple(_axis(text) for text in given.axis or ()),
        parameters=assignments(WORKLOAD_FLAG, given.workload_set),
        options=options_of(OPTION_FLAG, given.option),
        place=_flag_place,
    )


def _axis(text: str) -> Axis:
    """The Axis of `NAME=VALUE,VALUE`, of a workload parameter or, after `option:`, an option."""
    from lsmtune.experiment.sweep import Axis, AxisKind

    name, equals, listed = (part.strip() for part in text.partition("="))
    kind = AxisKind.OPTION if name.startswith(_OPTION_PREFIX) else AxisKind.WORKLOAD
    name = name.removeprefix(_OPTION_PREFIX).strip()
    texts = tuple(value.strip() for value in listed.split(","))
    if not (name and equals and all(texts)):
        raise InputError(AXIS_FLAG, found=text, allowed=AXIS_ALLOWED)
    if kind is AxisKind.OPTION:
        values = (option_of(AXIS_FLAG, f"{_OPTION_PREFIX}{name}", value) for value in texts)
        return Axis(kind, name, tuple(values), texts)
    return Axis(kind, name, texts, texts)


def _flag_place(at: str) -> tuple[str, str]:
    """The flag in which the dotted field `at` of a sweep file is given."""
    first, _, rest = at.partition(".")
    if first == "axes":
        kind, _, name = rest.partition(".")
        return AXIS_FLAG, f"{_OPTION_PREFIX}{name}" if kind == "options" else name
    if first == "workload":
        return WORKLOAD_FLAG, rest
    if first == "options":
        return OPTION_FLAG, rest
    return "--workload", rest


# --- its runs, and what is refused before they begin


def _doubts(sweep: Sweep, identity: EngineIdentity, cells: Sequence[GridCell]) -> list[str]:
    """What has no effect, and what speaks against a cell's configuration; any may be measured."""
    from lsmtune.engines.safety import doubts

    lines: dict[str, None] = dict.fromkeys(note for cell in cells for note in cell.notes)
    for cell in cells:
        config, durability = cell.config, cell.workload.durability
        doubtful = doubts(identity, config, durability, sweep.limits, config.label)
        lines |= dict.fromkeys(doubtful.reasons())
    return list(lines)


def _conditions(cells: Sequence[GridCell], runs: Sequence[StoredMeasurement]) -> list[str]:
    """What of the machine makes the figures say less than they seem to."""
    from lsmtune.report.notices import condition_notices
    from lsmtune.report.trust import conditions_of

    caches = {cell.name: cell.workload.page_cache for cell in cells}
    performed = [(run.measurement, caches[run.arm]) for run in runs if run.arm in caches]
    processors = {"": os.cpu_count() or 0}
    notices = condition_notices(conditions_of(performed, caches, processors))
    return [notice.line for notice in notices]


def _perform(
    sweep: Sweep, cells: Sequence[GridCell], folder: Path, runner: Runner, *, quiet: bool
) -> tuple[StoredMeasurement, ...]:
    """Every run that is stored when the sweep is over, or when the user ends it.

    Raises InputError for options that the engine refuses, and as `experiment.rounds` does.
    """
    from lsmtune.cli.live import bench_display
    from lsmtune.cli.rounds_progress import SweepProgress, stored_runs
    from lsmtune.experiment.measurer import loaded_databases
    from lsmtune.experiment.rounds import perform
    from lsmtune.experiment.sweep_grid import first_refused
    from lsmtune.machine.interrupts import stop_on_interrupt

    before = stored_runs(folder, {cell.name for cell in cells})
    progress = SweepProgress(cells, sweep.repeats, before, quiet=quiet)
    databases = loaded_databases(folder, runner, sweep.databases, progress)
    # On the disk of the runs, where that is there: what is above may be read-only, or in memory.
    parent = folder if folder.is_dir() else folder.absolute().parent
    with stop_on_interrupt(progress.say) as stop:
        known = {run.arm for run in before}
        refused = first_refused(cells, known, runner, sweep.limits, parent, stop)
        if refused is not None:
            raise _refusal(sweep, *refused)
        with bench_display(progress, quiet=quiet):
            return perform(
                cells,
                sweep.repeats,
                folder,
                runner,
                sweep.limits,
                sweep.seed,
                progress,
                stop,
                databases=databases,
            )


def _refusal(sweep: Sweep, cell: GridCell, measurement: Measurement) -> LsmtuneError:
    """For an option that the engine does not take, where the user wrote it."""
    error = measurement.error
    field = "" if error is None else error.field or ""
    if error is None or not field.startswith("options."):
        return failure(measurement, f"sweep: {cell.name}")
    on_axis = f"axes.{field}" in [axis.field for axis in sweep.axes]
    return error.input_error(*sweep.place(f"axes.{field}" if on_axis else field))
