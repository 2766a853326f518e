"""The flags of `lsmtune sweep`, and the Sweep that they state, alone or on top of a file."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.cli.flags import OPTION_FLAG, bytes_of, duration_of, option_of
from lsmtune.cli.interrupts import stop_on_interrupt
from lsmtune.cli.live import bench_display, stderr_console
from lsmtune.cli.output import failure
from lsmtune.cli.sweep_view import SweepProgress
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.errors import InputError, nearest_name
from lsmtune.experiment.measurer import loaded_databases
from lsmtune.experiment.rounds import perform, read_rounds
from lsmtune.experiment.store import FILE, StoredMeasurement, refuse_older
from lsmtune.experiment.sweep import (
    BUILT_IN,
    Axis,
    AxisKind,
    Place,
    Sweep,
    SweepEngine,
    SweepWorkload,
    built_in,
    load_sweep,
)
from lsmtune.experiment.sweep_grid import GridCell, first_refused
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import Limits
from lsmtune.workloads.choice import WORKLOAD_FLAG, assignments

AXIS_FLAG = "--axis"
NO_REUSE_FLAG = "--no-reuse"
_OPTION_PREFIX = "option:"


@dataclass(frozen=True)
class Given:
    """What the command line has; None where a flag was not given."""

    file: str | None = None
    engine: str | None = None
    library: Path | None = None
    workloads: Sequence[str] = ()
    axes: Sequence[str] = ()
    parameters: Sequence[str] = ()
    options: Sequence[str] = ()
    repeats: int | None = None
    seed: int | None = None
    deadline: str | None = None
    memory: str | None = None
    disk: str | None = None
    no_reuse: bool = False


def sweep_of(given: Given) -> Sweep:
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
        repeats=sweep.repeats if given.repeats is None else given.repeats,
        seed=sweep.seed if given.seed is None else given.seed,
        databases=databases,
        limits=_limits(sweep.limits, given),
    )


def default_folder(given: Given) -> Path:
    """Where the runs are kept unless the user says otherwise: beside the file, or here."""
    if given.file is None:
        return Path("sweep.lsmtune")
    path = Path(given.file)
    return path.with_name(f"{path.stem}.lsmtune")


def _of_file(given: Given, name: str) -> Sweep:
    """A built-in sweep or a file, with what `-w`, `-o` and `--engine` change of it."""
    for flag, texts in (("--workload", given.workloads), (AXIS_FLAG, given.axes)):
        if texts:
            why = f"has no effect beside {name}, which has its own"
            raise InputError(flag, found=texts[0], why=why)
    sweep = built_in(name) if name in BUILT_IN else _loaded(Path(name))
    parameters = assignments(WORKLOAD_FLAG, given.parameters)
    options = _options(given)
    if given.engine is not None and given.engine != sweep.engine.name:
        # A library of the file is of the file's engine.
        sweep = replace(sweep, engine=SweepEngine(given.engine))
    return replace(
        sweep,
        parameters={**sweep.parameters, **parameters},
        options={**sweep.options, **options},
        place=_overridden(sweep.place, parameters, options),
    )


def _loaded(path: Path) -> Sweep:
    """A file; a name that is nearly a built-in one is asked about."""
    if not path.exists() and not path.suffix:
        raise InputError(
            "sweep",
            found=str(path),
            allowed=f"a sweep file, or {', '.join(BUILT_IN)}",
            nearest=nearest_name(str(path), BUILT_IN),
        )
    return load_sweep(path)


def _of_flags(given: Given) -> Sweep:
    for flag, found, what in (
        ("--engine", given.engine, "an engine, or name a sweep file"),
        ("--workload", given.workloads, "a workload, or several with commas between"),
        (AXIS_FLAG, given.axes, "NAME=VALUE,VALUE or option:NAME=VALUE,VALUE"),
    ):
        if not found:
            raise InputError(flag, why="is missing", allowed=what)
    names = [name.strip() for text in given.workloads for name in text.split(",")]
    return Sweep(
        version=1,
        engine=SweepEngine(given.engine or ""),
        workloads=tuple(SweepWorkload(name) for name in names),
        axes=tuple(_axis(text) for text in given.axes),
        parameters=assignments(WORKLOAD_FLAG, given.parameters),
        options=_options(given),
        place=_flag_place,
    )


def _options(given: Given) -> dict[str, OptionValue]:
    texts = assignments(OPTION_FLAG, given.options)
    return {name: option_of(OPTION_FLAG, name, text) for name, text in texts.items()}


def _axis(text: str) -> Axis:
    """The Axis of `NAME=VALUE,VALUE`, of a workload parameter or, after `option:`, an option."""
    name, equals, listed = (part.strip() for part in text.partition("="))
    kind = AxisKind.OPTION if name.startswith(_OPTION_PREFIX) else AxisKind.WORKLOAD
    name = name.removeprefix(_OPTION_PREFIX).strip()
    texts = [value.strip() for value in listed.split(",")]
    if not (name and equals and all(texts)):
        allowed = "NAME=VALUE,VALUE or option:NAME=VALUE,VALUE"
        raise InputError(AXIS_FLAG, found=text, allowed=allowed)
    if kind is AxisKind.OPTION:
        values = [option_of(AXIS_FLAG, f"{_OPTION_PREFIX}{name}", value) for value in texts]
        return Axis.of(kind, name, values, texts)
    return Axis.of(kind, name, texts, texts)


def _flag_place(at: str) -> tuple[str, str]:
    """The flag in which the dotted field `at` of a sweep file is given."""
    first, _, rest = at.partition(".")
    if first == "axes":
        kind, _, name = rest.partition(".")
        return AXIS_FLAG, f"{_OPTION_PREFIX}{name}" if kind == AxisKind.OPTION.value else name
    if first == "workload":
        return WORKLOAD_FLAG, rest
    if first == "options":
        return OPTION_FLAG, rest
    return "--workload", rest


def _overridden(
    place: Place, parameters: Mapping[str, str], options: Mapping[str, OptionValue]
) -> Place:
    """`place`, but for what flags say in place of the file."""
    flags = {f"workload.{name}" for name in parameters} | {f"options.{name}" for name in options}
    return lambda at: _flag_place(at) if at in flags else place(at)


def _limits(limits: Limits, given: Given) -> Limits:
    if given.deadline is not None:
        limits = replace(limits, deadline_s=duration_of("--deadline", given.deadline))
    if given.memory is not None:
        limits = replace(limits, memory_bytes=bytes_of("--memory", given.memory))
    if given.disk is not None:
        limits = replace(limits, disk_bytes=bytes_of("--disk", given.disk))
    return limits


# --- Performing a sweep: its rounds, its display, and what is refused before they begin.


def stored_runs(folder: Path, cells: Sequence[GridCell]) -> tuple[StoredMeasurement, ...]:
    """The runs of these cells that `folder` has, if any.

    Whether they are comparable with what is wanted now is only seen when it is performed.
    """
    names = {cell.cell.name for cell in cells}
    refuse_older(folder / FILE)
    found = read_rounds(folder) if (folder / FILE).is_file() else ()
    return tuple(run for run in found if run.arm in names)


def perform_sweep(
    sweep: Sweep, cells: Sequence[GridCell], folder: Path, driver: Path
) -> tuple[StoredMeasurement, ...]:
    """Every run that is stored when the sweep is over, or when the user ends it.

    Raises InputError for options that the engine refuses, and as `experiment.rounds` does.
    """
    runner, before = NativeRunner(driver), stored_runs(folder, cells)
    ours, size_bytes = [cell.cell for cell in cells], sweep.databases_bytes
    say = _say if not stderr_console().is_terminal else _quiet
    progress = SweepProgress(ours, sweep.repeats, before, say, _say)
    databases = None
    if size_bytes:
        databases = loaded_databases(folder, runner, size_bytes, progress)
    with stop_on_interrupt(_say) as stop:
        known = {run.arm for run in before}
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
