"""From a Sweep to its cells: every combination of the axes' values under every workload."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path

from lsmtune.driver.runner import Runner
from lsmtune.engines.workload_options import check_workload, with_merge_operator, with_page_cache
from lsmtune.errors import InputError
from lsmtune.experiment.files import explained, run_directory
from lsmtune.experiment.run_length import factor_advised, length_warnings, scaled_num
from lsmtune.experiment.schedule import Cell
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.experiment.sweep import CELLS_MAX, Axis, AxisKind, Sweep
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.text import is_file
from lsmtune.model.workload import PageCache, Phase, PhaseKind, Workload
from lsmtune.space.parameter import OPTION_NAME_ALLOWED, is_option_name
from lsmtune.workloads.file import workload_from_file
from lsmtune.workloads.stated import FAMILIES, Stated, size_advice, state_workload

_SOURCE = "sweep"


@dataclass(frozen=True, kw_only=True)
class GridCell(Cell):
    """A cell with its place in the grid, under the workload that the sweep calls `workload_title`.

    `point` has the index of its value on each axis, `values` the texts of these values. `notes`
    say what of its workload has no effect, `parameters` are those that this was made with.
    """

    workload_title: str
    point: tuple[int, ...]
    values: tuple[str, ...]
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict, compare=False)


def grid(sweep: Sweep, engine: EngineIdentity) -> tuple[GridCell, ...]:
    """The cells of `sweep`, workload by workload; the last axis varies fastest.

    Raises InputError, at the place where the user wrote it, for a grid that is none, for values
    that a workload or option cannot have, and for two cells that would be the same.
    """
    _check(sweep)
    cells: list[GridCell] = []
    for index in range(len(sweep.workloads)):
        points = itertools.product(*(range(len(axis.values)) for axis in sweep.axes))
        made = [_cell(sweep, index, point, engine) for point in points]
        distinct: dict[object, GridCell] = {}
        for cell in made:
            twin = distinct.setdefault((cell.workload, _options(cell)), cell)
            if twin is not cell:
                raise _same_cell(sweep, twin, cell)
        cells += made
    return tuple(cells)


def _options(cell: GridCell) -> tuple[tuple[str, str], ...]:
    return tuple(cell.config.engine_options().items())


def _check(sweep: Sweep) -> None:
    if not sweep.axes:
        allowed = "at least one axis with its values"
        raise InputError(*sweep.place("axes"), why="none given", allowed=allowed)
    names = [workload.title for workload in sweep.workloads]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(*sweep.place(f"workloads[{index}]"), found=name, why="given twice")
    fixed = {f"workload.{name}" for name in sweep.parameters}
    fixed |= {f"workload.{name}" for workload in sweep.workloads for name in workload.parameters}
    fixed |= {f"options.{name}" for name in sweep.options}
    for axis in sweep.axes:
        place = sweep.place(axis.field)
        if not axis.values:
            raise InputError(*place, why="has no values", allowed="at least one value")
        for index, text in enumerate(axis.texts):
            if text in axis.texts[:index]:
                raise InputError(*place, found=text, why="given twice")
        if sum(other.field == axis.field for other in sweep.axes) > 1:
            raise InputError(*place, why="given twice")
        if axis.kind is AxisKind.OPTION and not is_option_name(axis.name):
            raise InputError(*place, why="not an option's name", allowed=OPTION_NAME_ALLOWED)
        if axis.field.removeprefix("axes.") in fixed:
            raise InputError(*place, why="is an axis and has a fixed value too")
    cells = sweep.points * len(sweep.workloads)
    if cells > CELLS_MAX:
        why = f"{cells:,} cells"
        raise InputError(*sweep.place("axes"), why=why, allowed=f"at most {CELLS_MAX:,}")


def _cell(sweep: Sweep, index: int, point: tuple[int, ...], engine: EngineIdentity) -> GridCell:
    """The cell at `point` under the workload `index`."""
    chosen = list(zip(sweep.axes, point, strict=True))
    values = tuple(axis.texts[at] for axis, at in chosen)
    title = sweep.workloads[index].title
    name = ", ".join([title, *(f"{axis.name}={axis.texts[at]}" for axis, at in chosen)])
    stated = _stated(sweep, index, chosen)
    config = _config(sweep, index, chosen, stated.workload)
    # Options come from the sweep alone.
    why = "an engine's property has no effect in a sweep: state it under options"
    notes = (f"{option.where}: {name}: {why}" for name, option in stated.engine.items())
    return GridCell(
        engine=engine,
        config=config,
        name=name,
        workload=stated.workload,
        workload_title=title,
        point=point,
        values=values,
        notes=(*stated.notes, *notes),
        parameters=stated.parameters,
    )


def _stated(sweep: Sweep, index: int, chosen: list[tuple[Axis, int]]) -> Stated:
    """The workload of one point, by name or from a file."""
    workload = sweep.workloads[index]
    here = {axis.name: axis.values[at] for axis, at in chosen if axis.kind is AxisKind.WORKLOAD}
    given = {**sweep.parameters, **workload.parameters, **here}
    file, folder, engine = sweep.folder / workload.name, sweep.folder, sweep.engine.name
    try:
        if workload.name in FAMILIES or not is_file(file):
            return state_workload(workload.name, given, _SOURCE, folder=folder)
        return workload_from_file(file, given, _SOURCE, folder=folder, engine_name=engine)
    except InputError as error:
        if error.source != _SOURCE:
            raise  # of the workload's own file
        raise _in_place(sweep, index, error) from None


def _config(sweep: Sweep, index: int, chosen: list[tuple[Axis, int]], workload: Workload) -> Config:
    options: dict[str, OptionValue] = dict(sweep.options)
    texts = [f"{name}={value}" for name, value in options.items()]
    for axis, at in chosen:
        if axis.kind is AxisKind.OPTION:
            options[axis.name] = axis.values[at]
            texts.append(f"{axis.name}={axis.texts[at]}")
    config, engine = Config(options, ",".join(texts) or "default"), sweep.engine.name
    try:
        check_workload(workload, engine, _SOURCE)
        config = with_merge_operator(config, engine, workload, _SOURCE)
        return with_page_cache(config, engine, workload.page_cache, _SOURCE)
    except InputError as error:
        raise _in_place(sweep, index, error) from None


def _in_place(sweep: Sweep, index: int, error: InputError) -> InputError:
    """`error`, about the workload `index`, where the user wrote what is wrong."""
    fields = [axis.field for axis in sweep.axes]
    fields += [f"workloads[{index}].{name}" for name in sweep.workloads[index].parameters]
    fields += [f"workload.{name}" for name in sweep.parameters]
    fields += [f"options.{name}" for name in sweep.options]
    found = (field for field in fields if field.endswith(f".{error.field}"))
    source, field = sweep.place(next(found, f"workloads[{index}]"))
    return error.but(source=source, field=field)


def _same_cell(sweep: Sweep, twin: GridCell, cell: GridCell) -> InputError:
    """Values that are written in two ways (`1MiB`, `1048576`) make one cell twice."""
    differs = [a != b for a, b in zip(twin.point, cell.point, strict=True)].index(True)
    axis = sweep.axes[differs]
    idle = [note for note in cell.notes if f": {axis.name}: has no effect: " in note]
    why = idle[0].split(": ", 2)[2] if idle else "the same value twice"
    found = f"{twin.values[differs]} and {cell.values[differs]}"
    return InputError(*sweep.place(axis.field), why=why, found=found)


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
    limits = replace(limits, deadline_s=min(limits.deadline_s, _DEADLINE_S))
    tried = {_options(cell) for cell in cells if cell.name in known}
    for cell in cells:
        if _options(cell) in tried or cancel.is_set():
            continue
        tried.add(_options(cell))
        one = replace(cell.workload, phases=_ONE_PUT, num=1, page_cache=PageCache.WARM)
        with explained(parent):
            parent.mkdir(parents=True, exist_ok=True)
            with run_directory(parent) as directory:
                request = RunRequest(
                    cell.engine, cell.config, one, 0, directory, limits, verify_keys=0
                )
                measurement = runner.run(request, None, cancel)
        if measurement.outcome is Outcome.INVALID:
            return cell, measurement
    return None


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
    return sum(means.get(name, usual) * max(0, rounds - len(walls[name])) for name in names)


def is_rough(names: Sequence[str], runs: Iterable[StoredMeasurement]) -> bool:
    """Whether some cell has not run yet, so that `left_s` is a guess for it."""
    return bool(set(names) - {run.arm for run in runs})


def written_bytes(cells: Iterable[GridCell]) -> int:
    """Bytes of keys and values in the databases of one round, as if each was filled once."""
    return sum(w.num * (w.key_bytes + w.value_bytes) for w in (cell.workload for cell in cells))


# --- Whether the runs of a sweep were long enough to say what is sustained: pure.


def too_short(cells: Sequence[GridCell], runs: Sequence[StoredMeasurement]) -> list[str]:
    """A line per workload with cells whose last good run may be too short, with the worst of them.

    `runs` are in the order of the rounds. The worst is the cell whose runs have to grow most.
    """
    last = {run.arm: run.measurement for run in runs if run.measurement.outcome is Outcome.OK}
    lines = []
    for workload in dict.fromkeys(cell.workload_title for cell in cells):
        known = [c for c in cells if c.workload_title == workload and c.name in last]
        short = [cell for cell in known if length_warnings(last[cell.name])]
        if not short:
            continue
        factors = ((factor_advised(last[cell.name]) or 1.0, cell) for cell in short)
        factor, worst = max(factors, key=itemgetter(0))
        wanted = scaled_num(worst.workload.num, factor)
        larger = size_advice(worst.workload, wanted, worst.parameters, "{}={}", ", ")
        advice = f"; {larger} may do" if wanted > worst.workload.num else ""
        lines.append(
            f"in {len(short)} of {len(known)} cells of {workload} the runs may be too short to say "
            f"what is sustained ({worst.name}: {length_warnings(last[worst.name])[0]}{advice})"
        )
    return lines
