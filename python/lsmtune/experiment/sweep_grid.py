"""From a Sweep to its cells: every combination of the axes' values under every workload."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.driver.runner import Runner
from lsmtune.engines.workload_options import check_workload, with_merge_operator, with_page_cache
from lsmtune.errors import InputError
from lsmtune.experiment.files import explained, run_directory
from lsmtune.experiment.run_length import factor_wanted, run_length, scaled_num
from lsmtune.experiment.schedule import Cell
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.experiment.sweep import CELLS_MAX, Axis, AxisKind, Sweep, SweepWorkload
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import PageCache, Phase, PhaseKind, Workload
from lsmtune.space.parameter import OPTION_NAME_ALLOWED, is_option_name
from lsmtune.workloads.stated import FAMILIES, Stated, state_workload
from lsmtune.workloads.study_fields import workload_from_file

_SOURCE = "sweep"


@dataclass(frozen=True)
class GridCell:
    """A cell with its place in the grid.

    `point` has the index of its value on each axis, `values` the texts of these values. `notes`
    say what of its workload has no effect.
    """

    cell: Cell
    workload: str
    point: tuple[int, ...]
    values: tuple[str, ...]
    notes: tuple[str, ...] = ()


def grid(sweep: Sweep, engine: EngineIdentity) -> tuple[GridCell, ...]:
    """The cells of `sweep`, workload by workload; the last axis varies fastest.

    Raises InputError, at the place where the user wrote it, for a grid that is none, for values
    that a workload or option cannot have, and for two cells that would be the same.
    """
    _check(sweep)
    cells: list[GridCell] = []
    for index, workload in enumerate(sweep.workloads):
        made = list(_cells_of(sweep, index, workload, engine))
        _refuse_twins(sweep, made)
        cells += made
    return tuple(cells)


def _check(sweep: Sweep) -> None:
    if not sweep.workloads:
        raise sweep.error("workloads", why="none given", allowed="the names of workloads")
    if not sweep.axes:
        raise sweep.error("axes", why="none given", allowed="at least one axis with its values")
    told = [workload.told for workload in sweep.workloads]
    for index, name in enumerate(told):
        if name in told[:index]:
            raise sweep.error(f"workloads[{index}]", found=name, why="given twice")
    for axis in sweep.axes:
        _check_axis(sweep, axis)
    cells = sweep.points * len(sweep.workloads)
    if cells > CELLS_MAX:
        raise sweep.error("axes", why=f"{cells:,} cells", allowed=f"at most {CELLS_MAX:,}")


def _check_axis(sweep: Sweep, axis: Axis) -> None:
    if not axis.values:
        raise sweep.error(axis.field, why="has no values", allowed="at least one value")
    for index, text in enumerate(axis.texts):
        if text in axis.texts[:index]:
            raise sweep.error(axis.field, found=text, why="given twice")
    if any(other.field == axis.field for other in sweep.axes if other is not axis):
        raise sweep.error(axis.field, why="given twice")
    if axis.kind is AxisKind.OPTION:
        if not is_option_name(axis.name):
            raise sweep.error(axis.field, why="not an option's name", allowed=OPTION_NAME_ALLOWED)
        fixed = axis.name in sweep.options
    else:
        own = any(axis.name in workload.parameters for workload in sweep.workloads)
        fixed = own or axis.name in sweep.parameters
    if fixed:
        raise sweep.error(axis.field, why="is an axis and has a fixed value too")


def _cells_of(
    sweep: Sweep, index: int, workload: SweepWorkload, engine: EngineIdentity
) -> Iterator[GridCell]:
    for point in itertools.product(*(range(len(axis.values)) for axis in sweep.axes)):
        chosen = list(zip(sweep.axes, point, strict=True))
        values = tuple(axis.texts[at] for axis, at in chosen)
        told = [f"{axis.name}={text}" for axis, text in zip(sweep.axes, values, strict=True)]
        stated = _stated(sweep, index, workload, chosen)
        cell = Cell(
            name=", ".join([workload.told, *told]),
            engine=engine,
            config=_config(sweep, index, chosen, stated.workload),
            workload=stated.workload,
        )
        yield GridCell(cell, workload.told, point, values, _notes(stated))


def _stated(
    sweep: Sweep, index: int, workload: SweepWorkload, chosen: list[tuple[Axis, int]]
) -> Stated:
    """The workload of one point, by name or from a file."""
    here = {axis.name: axis.values[at] for axis, at in chosen if axis.kind is AxisKind.WORKLOAD}
    given = {**sweep.parameters, **workload.parameters, **here}
    file = sweep.folder / workload.name
    try:
        if workload.name in FAMILIES or not file.is_file():
            return state_workload(workload.name, given, _SOURCE)
        return workload_from_file(file, given, _SOURCE)
    except InputError as error:
        if error.source != _SOURCE:
            raise  # of the workload's own file
        at = f"workloads[{index}]"
        if error.field in here:
            at = f"axes.{AxisKind.WORKLOAD.value}.{error.field}"
        elif error.field in workload.parameters:
            at = f"workloads[{index}].{error.field}"
        elif error.field in sweep.parameters:
            at = f"workload.{error.field}"
        raise _at(sweep, at, error) from None


def _notes(stated: Stated) -> tuple[str, ...]:
    """What of a workload has no effect; options come from the sweep alone."""
    why = "an engine's property has no effect in a sweep: state it under options"
    engine = (f"{found.where}: {name}: {why}" for name, found in stated.engine.items())
    return (*stated.notes, *engine)


def _at(sweep: Sweep, at: str, error: InputError) -> InputError:
    """`error` at the place where the user wrote what is wrong."""
    return sweep.error(
        at, why=error.why, found=error.found, allowed=error.allowed, nearest=error.nearest
    )


def _config(sweep: Sweep, index: int, chosen: list[tuple[Axis, int]], workload: Workload) -> Config:
    options: dict[str, OptionValue] = dict(sweep.options)
    told = [f"{name}={value}" for name, value in options.items()]
    for axis, at in chosen:
        if axis.kind is AxisKind.OPTION:
            options[axis.name] = axis.values[at]
            told.append(f"{axis.name}={axis.texts[at]}")
    config = Config(options, ",".join(told) or "default")
    try:
        check_workload(workload, sweep.engine, _SOURCE)
        config = with_merge_operator(config, sweep.engine, workload, _SOURCE)
        return with_page_cache(config, sweep.engine, workload.page_cache, _SOURCE)
    except InputError as error:
        fields = [*(axis.field for axis, _ in chosen), *_fixed(sweep)]
        known = [field for field in fields if field.rpartition(".")[2] == error.field]
        raise _at(sweep, known[0] if known else f"workloads[{index}]", error) from None


def _fixed(sweep: Sweep) -> list[str]:
    """Where what holds in every cell stands, dotted."""
    return [f"workload.{n}" for n in sweep.parameters] + [f"options.{n}" for n in sweep.options]


def _refuse_twins(sweep: Sweep, cells: list[GridCell]) -> None:
    """Values that are written in two ways (`1MiB`, `1048576`) make one cell twice."""
    seen: dict[object, GridCell] = {}
    for made in cells:
        config = tuple(made.cell.config.engine_options().items())
        twin = seen.setdefault((made.cell.workload, config), made)
        if twin is not made:
            differs = [a != b for a, b in zip(twin.point, made.point, strict=True)].index(True)
            axis = sweep.axes[differs]
            found = f"{twin.values[differs]} and {made.values[differs]}"
            idle = [note for note in made.notes if f": {axis.name}: has no effect: " in note]
            why = idle[0].split(": ", 2)[2] if idle else "the same value twice"
            raise sweep.error(axis.field, why=why, found=found)


# --- Whether the engine takes the options of every cell, found out before hours are spent on some.

# An engine that hangs over one put is no refusal: its runs say so themselves.
_DEADLINE_S = 30.0
_ONE_PUT = (Phase("one put", PhaseKind.MEASURE, "fillseq", operations_per_thread=1),)


def first_refused(
    cells: Iterable[GridCell],
    known: Collection[str],
    runner: Runner,
    limits: Limits,
    parent: Path,
    cancel: threading.Event,
) -> tuple[GridCell, Measurement] | None:
    """The first cell of which the engine refuses the options, with what it said; None if none is.

    Each assignment of options is tried once with a single put, in a scratch folder under `parent`;
    those of the cells named in `known` have run already. The first is tried even where it has no
    options, because a driver of another version refuses every request.
    """
    tried = {_options(cell) for cell in cells if cell.cell.name in known}
    for cell in cells:
        if _options(cell) in tried or cancel.is_set():
            continue
        tried.add(_options(cell))
        measurement = _one_put(cell, runner, limits, parent, cancel)
        if measurement.outcome is Outcome.INVALID:
            return cell, measurement
    return None


def _options(cell: GridCell) -> tuple[tuple[str, str], ...]:
    return tuple(cell.cell.config.engine_options().items())


def _one_put(
    cell: GridCell, runner: Runner, limits: Limits, parent: Path, cancel: threading.Event
) -> Measurement:
    limits = replace(limits, deadline_s=min(limits.deadline_s, _DEADLINE_S))
    one = replace(cell.cell.workload, phases=_ONE_PUT, num=1, page_cache=PageCache.WARM)
    with explained(parent):
        parent.mkdir(parents=True, exist_ok=True)
        with run_directory(parent) as directory:
            request = RunRequest(
                cell.cell.engine, cell.cell.config, one, 0, directory, limits, verify_keys=0
            )
            return runner.run(request, None, cancel)


# --- How much is left of a sweep, from what its cells took so far: pure.


def left_s(names: Sequence[str], rounds: int, runs: Iterable[StoredMeasurement]) -> float | None:
    """Seconds until each of `names` has run in each of `rounds`; None before any has.

    A cell takes what it took so far, in the mean; one that has not run yet, the mean of the others.
    """
    walls: dict[str, list[float]] = {name: [] for name in names}
    for run in runs:
        if run.arm in walls:
            walls[run.arm].append(run.wall_s)
    means = {name: statistics.fmean(taken) for name, taken in walls.items() if taken}
    if not means:
        return None
    usual = statistics.fmean(means.values())
    each = [(means.get(name, usual), len(walls[name])) for name in names]
    return sum(mean * max(0, rounds - count) for mean, count in each)


def is_rough(names: Sequence[str], runs: Iterable[StoredMeasurement]) -> bool:
    """Whether some cell has not run yet, so that `left_s` is a guess for it."""
    return bool(set(names) - {run.arm for run in runs})


def written_bytes(cells: Iterable[GridCell]) -> int:
    """Bytes of keys and values in the databases of one round, as if each was filled once."""
    return sum(
        w.num * (w.key_bytes + w.value_bytes) for w in (cell.cell.workload for cell in cells)
    )


# --- Whether the runs of a sweep were long enough to say what is sustained: pure.


def too_short(cells: Sequence[GridCell], runs: Sequence[StoredMeasurement]) -> list[str]:
    """A line per workload with cells whose last good run may be too short, with the worst of them.

    `runs` are in the order of the rounds. The worst cell is the one that wants the most keys.
    """
    last = {run.arm: run.measurement for run in runs if run.measurement.outcome is Outcome.OK}
    lines = []
    for workload in dict.fromkeys(cell.workload for cell in cells):
        known = [cell for cell in cells if cell.workload == workload and cell.cell.name in last]
        short = [cell for cell in known if run_length(last[cell.cell.name])]
        if short:
            lines.append(_line(workload, short, len(known), last))
    return lines


def _line(
    workload: str, short: Sequence[GridCell], known: int, last: dict[str, Measurement]
) -> str:
    factors = [factor_wanted(last[cell.cell.name]) or 1.0 for cell in short]
    worst = max(range(len(short)), key=lambda index: factors[index])
    cell = short[worst]
    said = run_length(last[cell.cell.name])[0]
    num = cell.cell.workload.num
    wanted = scaled_num(num, factors[worst])
    advice = f"; num={wanted} may do" if wanted > num else ""
    return (
        f"in {len(short)} of {known} cells of {workload} the runs may be too short to say what is "
        f"sustained ({cell.cell.name}: {said}{advice})"
    )
