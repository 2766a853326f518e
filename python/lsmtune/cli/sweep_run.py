"""Performing a sweep: its rounds, its display, and what is refused before they begin."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Sequence
from pathlib import Path

from lsmtune.cli.interrupt import stop_on_interrupt
from lsmtune.cli.live import bench_display, stderr_console
from lsmtune.cli.output import failure
from lsmtune.cli.sweep_progress import LoadTelling, SweepProgress
from lsmtune.databases import DatabaseCache
from lsmtune.records.measurement import Measurement
from lsmtune.rounds import CellRun, perform, read_rounds
from lsmtune.rounds.store import FILE
from lsmtune.runners.base import Runner
from lsmtune.runners.native import NativeRunner
from lsmtune.sweep import AxisKind, GridCell, Sweep
from lsmtune.sweep.check import first_refused

_DATABASES = "databases"


def stored_runs(folder: Path, cells: Sequence[GridCell]) -> tuple[CellRun, ...]:
    """The runs of these cells that `folder` has, if any.

    Whether they are comparable with what is wanted now is only seen when it is performed.
    """
    names = {cell.cell.name for cell in cells}
    found = read_rounds(folder) if (folder / FILE).is_file() else ()
    return tuple(run for run in found if run.cell in names)


def perform_sweep(
    sweep: Sweep, cells: Sequence[GridCell], folder: Path, driver: Path
) -> tuple[CellRun, ...]:
    """Every run that is stored when the sweep is over, or when the user ends it.

    Raises InputError for options that the engine refuses, and as `rounds.perform` does.
    """
    runner, before = NativeRunner(driver), stored_runs(folder, cells)
    ours, size_bytes = [cell.cell for cell in cells], sweep.databases_bytes
    say = _say if not stderr_console().is_terminal else _quiet
    progress = SweepProgress(ours, sweep.repeats, before, say)
    databases = None
    if size_bytes:
        told = LoadTelling(progress, _say)
        databases = DatabaseCache(folder / _DATABASES, runner, size_bytes, observer=told)
    with stop_on_interrupt(_say) as stop:
        known = {run.cell for run in before}
        _refuse_options(sweep, cells, known, runner, folder.absolute().parent, stop)
        with bench_display(progress.run, lambda: progress.title):
            return perform(
                ours,
                sweep.repeats,
                folder,
                runner,
                sweep.limits,
                sweep.seed,
                progress,
                stop,
                databases=databases,
                parts={"runner": "native"},
            )


def _refuse_options(
    sweep: Sweep,
    cells: Sequence[GridCell],
    known: Collection[str],
    runner: Runner,
    parent: Path,
    stop: threading.Event,
) -> None:
    """Raises InputError, where the user wrote it, for an option that the engine does not take."""
    refused = first_refused(cells, known, runner, sweep.limits, parent, stop)
    if refused is None:
        return
    cell, measurement = refused
    name = _option_of(measurement)
    fields = [axis.field for axis in sweep.axes if axis.kind is AxisKind.OPTION]
    wrong = f"axes.{AxisKind.OPTION.value}.{name}"
    at = wrong if wrong in fields else f"options.{name}"
    error = measurement.error
    if error is None or not name:
        raise failure(measurement, f"sweep: {cell.cell.name}")
    raise error.input_error(*sweep.place(at))


def _option_of(measurement: Measurement) -> str:
    """The option that was refused; empty where that is not what was."""
    field = (measurement.error.field if measurement.error else None) or ""
    return field.removeprefix("options.") if field.startswith("options.") else ""


def _say(text: str) -> None:
    print(f"lsmtune: {text}", file=sys.stderr, flush=True)


def _quiet(_text: str) -> None:
    """A line per run has no place beside a live display."""
