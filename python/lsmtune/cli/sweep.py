"""`lsmtune sweep`: a grid of workload parameters and option values, laid side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsmtune.cli.flags import (
    DeadlineIfSetOption,
    DiskIfSetOption,
    JsonOption,
    LibraryOption,
    MemoryIfSetOption,
    OptionSetOption,
    whole_number,
)
from lsmtune.errors import ExitStatus, LsmtuneError
from lsmtune.model.request import SEED_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lsmtune.experiment.store import StoredMeasurement
    from lsmtune.experiment.sweep import Sweep
    from lsmtune.experiment.sweep_grid import GridCell
    from lsmtune.experiment.sweep_tables import SweepResult
    from lsmtune.model.config import EngineIdentity

COMMAND = "sweep"
EPILOG = "\n\n".join(
    (
        "Examples:",
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
)

EngineFlag = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="The engine; that of FILE unless given."),
]
WorkloadFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--workload", metavar="NAME,NAME", help="Workloads, names or files, with commas between."
    ),
]
AxisFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="NAME=V,V",
        help="A workload parameter and its values, or option:NAME=V,V; again for each axis.",
    ),
]
ParameterFlag = Annotated[
    list[str] | None,
    typer.Option(
        "-w",
        "--workload-set",
        metavar="KEY=VALUE",
        help="A workload parameter of all cells, again for each.",
    ),
]
RepeatFlag = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        metavar="N",
        parser=whole_number("--repeat", 1, 1000),
        help="Rounds; 3 unless FILE says otherwise.",
    ),
]
SeedFlag = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        parser=whole_number("--seed", 0, SEED_MAX - 1000),
        help="All randomness follows from it; 1 unless FILE says otherwise.",
    ),
]
DirectoryFlag = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="DIR",
        help="Where the runs are kept; sweep.lsmtune, or beside FILE, unless given.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the `sweep` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_sweep)


def _sweep(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A sweep file (YAML), or rf5.")
    ] = None,
    engine: EngineFlag = None,
    library: LibraryOption = None,
    workload: WorkloadFlag = None,
    axis: AxisFlag = None,
    workload_set: ParameterFlag = None,
    option: OptionSetOption = None,
    repeat: RepeatFlag = None,
    seed: SeedFlag = None,
    directory: DirectoryFlag = None,
    no_reuse: Annotated[
        bool, typer.Option("--no-reuse", help="Load a database for every run, and copy none.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the cells and the time left, and run nothing.")
    ] = False,
    deadline: DeadlineIfSetOption = None,
    memory: MemoryIfSetOption = None,
    disk: DiskIfSetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a grid of workload parameters and option values."""
    from lsmtune.cli.sweep_run import Given, default_folder, perform_sweep, sweep_of
    from lsmtune.driver.conversation import find_driver
    from lsmtune.driver.library_facts import chosen_engine
    from lsmtune.experiment.sweep_grid import grid
    from lsmtune.experiment.sweep_tables import summarise

    given = Given(
        file=file,
        engine=engine,
        library=library,
        workloads=workload or (),
        axes=axis or (),
        parameters=workload_set or (),
        options=option or (),
        repeats=repeat,
        seed=seed,
        deadline=deadline,
        memory=memory,
        disk=disk,
        no_reuse=no_reuse,
    )
    sweep, folder = sweep_of(given), directory or default_folder(given)
    driver = find_driver()
    identity, warnings = chosen_engine(sweep.engine.name, sweep.library, driver)
    cells = grid(sweep, identity)
    if plan:
        _show_plan(sweep, cells, folder, as_json)
        return
    doubtful = [*warnings, *_doubts(sweep, identity, cells)]
    for warning in doubtful:
        typer.echo(f"lsmtune: warning: {warning}", err=True)
    runs = perform_sweep(sweep, cells, folder, driver)
    result = summarise(sweep, cells, runs, [*doubtful, *_conditions(cells, runs)])
    _tell(result, folder, as_json)
    _raise_unless_whole(result, folder)


def _doubts(sweep: Sweep, identity: EngineIdentity, cells: Sequence[GridCell]) -> list[str]:
    """What has no effect, and what speaks against a cell's configuration; any may be measured."""
    from lsmtune.engines.safety import doubts

    lines: dict[str, None] = dict.fromkeys(note for cell in cells for note in cell.notes)
    for cell in cells:
        config, durability = cell.cell.config, cell.cell.workload.durability
        found = doubts(identity, config, durability, sweep.limits, config.label)
        lines |= dict.fromkeys(found.reasons())
    return list(lines)


def _conditions(cells: Sequence[GridCell], runs: Sequence[StoredMeasurement]) -> list[str]:
    """What of the machine makes the figures say less than they seem to."""
    from lsmtune.machine.host import cores_present
    from lsmtune.report.notices import condition_notices
    from lsmtune.report.trust import conditions_of

    caches = {cell.cell.name: cell.cell.workload.page_cache for cell in cells}
    performed = [(run.measurement, caches[run.arm]) for run in runs if run.arm in caches]
    found = conditions_of(performed, caches, cores_present())
    return [f"{notice.title}: {notice.text}" for notice in condition_notices(found)]


def _show_plan(sweep: Sweep, cells: Sequence[GridCell], folder: Path, as_json: bool) -> None:
    from lsmtune.cli.sweep_run import stored_runs
    from lsmtune.cli.sweep_view import plan_document, plan_view

    runs = stored_runs(folder, cells)
    if as_json:
        typer.echo(json.dumps(plan_document(sweep, cells, runs, folder), indent=2))
    else:
        _print(plan_view(sweep, cells, runs, folder))


def _tell(result: SweepResult, folder: Path, as_json: bool) -> None:
    """Write the files of the result and print it."""
    from lsmtune.report.sweep import document, sweep_document, write_sweep
    from lsmtune.report.terminal import to_terminal

    if not result.runs:
        return
    files = write_sweep(result, folder / "result")
    if as_json:
        told = document(result) | {"files": [str(file) for file in files]}
        typer.echo(json.dumps(told, indent=2))
        return
    _print(to_terminal(sweep_document(result)))
    typer.echo(f"written: {', '.join(str(file) for file in files)}")


def _raise_unless_whole(result: SweepResult, folder: Path) -> None:
    """Ends the command in another status than 0 where runs are missing, or did not end well."""
    if result.runs < result.runs_wanted:
        done = f"{result.runs} of {result.runs_wanted} runs are kept in {folder}"
        typer.echo(f"lsmtune: interrupted; {done}", err=True)
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if result.failures:
        bad = len(result.failures)
        raise LsmtuneError(f"{COMMAND}: {bad} of {result.runs} runs did not end well")


def _print(view: object) -> None:
    from rich.console import Console

    # A pipe has no width of its own; whole lines are what a reader there wants.
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(view)
