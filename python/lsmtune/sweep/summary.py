"""From the runs of a sweep to its tables: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lsmtune.records.engine import Build, EngineIdentity
from lsmtune.records.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.records.workload import PhaseKind
from lsmtune.rounds import CellRun
from lsmtune.stats.mean import MeanInterval, geometric_mean_interval, mean_interval
from lsmtune.stats.paired import MINIMUM_PAIRS, RatioInterval, paired_ratio
from lsmtune.sweep.grid import GridCell
from lsmtune.sweep.lengths import too_short
from lsmtune.sweep.metrics import METRICS, RATIOS, metrics_of
from lsmtune.sweep.notes import table_notes
from lsmtune.sweep.plan import Sweep
from lsmtune.sweep.result import (
    RATES,
    AxisRow,
    CellSummary,
    Failure,
    RunRow,
    SweepResult,
    Table,
)

CONFIDENCE = 0.95

# Of one table: by cell, then by round, the metrics of a run that ended well.
_Values = Mapping[str, Mapping[int, Mapping[str, float]]]


def summarise(
    sweep: Sweep,
    cells: Sequence[GridCell],
    runs: Iterable[CellRun],
    warnings: Sequence[str] = (),
) -> SweepResult:
    """The tables of `runs`, one per workload and measure phase, as far as they were performed."""
    done = sorted(runs, key=lambda run: run.round)
    rows = tuple(_rows(cells, done))
    tables = [
        _table(sweep, workload, phase, cells, done, rows)
        for workload in dict.fromkeys(cell.workload for cell in cells)
        for phase in next(c.cell for c in cells if c.workload == workload).workload.measured_phases
    ]
    rounds = max((run.round + 1 for run in done), default=0)
    return SweepResult(
        name=sweep.name,
        engine=_engine(cells[0].cell.engine, done),
        axes=tuple(AxisRow(axis.kind.value, axis.name, axis.texts) for axis in sweep.axes),
        repeats=max(sweep.repeats, rounds),
        seed=sweep.seed,
        runs=len(done),
        runs_wanted=len(cells) * max(sweep.repeats, rounds),
        runs_s=sum(run.wall_s for run in done),
        confidence=CONFIDENCE,
        tables=tuple(tables),
        failures=tuple(_failure(run) for run in done if not _ended_well(run)),
        warnings=tuple(dict.fromkeys((*warnings, *too_short(cells, done), *_warnings(done)))),
        rows=rows,
    )


def _engine(asked: EngineIdentity, runs: Sequence[CellRun]) -> EngineIdentity:
    """The engine in its own words, where it said any; how it was built only the request knows."""
    said = next((run.measurement.engine for run in runs if run.measurement.engine.version), None)
    if said is None:
        return asked
    build = asked.build if said.build is Build.UNKNOWN else said.build
    return EngineIdentity(said.name, said.version, asked.library, build)


def _phase(measurement: Measurement, name: str) -> PhaseMeasurement | None:
    measured = PhaseKind.MEASURE.value
    found = (p for p in measurement.phases if p.kind == measured and p.name == name)
    return next(found, None)


def _ended_well(run: CellRun) -> bool:
    return run.measurement.outcome is Outcome.OK


def _rows(cells: Sequence[GridCell], runs: Sequence[CellRun]) -> Iterable[RunRow]:
    by_name = {cell.cell.name: cell for cell in cells}
    for run in runs:
        cell = by_name.get(run.cell)
        if cell is None:
            continue
        for name in cell.cell.workload.measured_phases:
            phase = _phase(run.measurement, name)
            yield RunRow(
                workload=cell.workload,
                phase=name,
                cell=run.cell,
                values=cell.values,
                round=run.round,
                seed=run.seed,
                outcome=run.measurement.outcome.value,
                wall_s=run.wall_s,
                metrics={} if phase is None else metrics_of(run.measurement, phase),
            )


def _table(
    sweep: Sweep,
    workload: str,
    phase: str,
    cells: Sequence[GridCell],
    runs: Sequence[CellRun],
    rows: Sequence[RunRow],
) -> Table:
    ours = [cell for cell in cells if cell.workload == workload]
    values: dict[str, dict[int, Mapping[str, float]]] = {cell.cell.name: {} for cell in ours}
    for row in rows:
        if (row.workload, row.phase) == (workload, phase) and row.outcome == Outcome.OK.value:
            values[row.cell][row.round] = row.metrics
    summaries = tuple(_summary(cell, ours[0], values, runs) for cell in ours)
    metric = next((m for m in RATES if any(m in s.metrics for s in summaries)), RATES[0])
    known = [(value, i) for i, s in enumerate(summaries) if (value := s.value(metric)) is not None]
    # Of equal values the first cell of the grid.
    best = max(known, key=lambda pair: (pair[0], -pair[1]))[1] if known else None
    rates = [_of_metric(values[cell.cell.name], metric) for cell in ours]
    notes = table_notes(sweep.axes, summaries, best, rates, metric)
    return Table(workload, phase, metric, summaries, best, tuple(notes))


def _of_metric(found: Mapping[int, Mapping[str, float]], metric: str) -> dict[int, float]:
    """The values of one metric by round, without those that were not observed."""
    return {number: run[metric] for number, run in found.items() if metric in run}


def _summary(
    cell: GridCell, first: GridCell, values: _Values, runs: Sequence[CellRun]
) -> CellSummary:
    name, workload = cell.cell.name, cell.cell.workload
    ended = Counter(run.measurement.outcome.value for run in runs if run.cell == name)
    by_metric = {
        metric: [found[metric] for found in values[name].values() if metric in found]
        for metric in METRICS
    }
    ratios = {} if cell is first else _ratios(values[first.cell.name], values[name])
    return CellSummary(
        cell=name,
        point=cell.point,
        values=cell.values,
        options=dict(cell.cell.config.options),
        key_bytes=workload.key_bytes,
        value_bytes=workload.value_bytes,
        num=workload.num,
        outcomes=dict(ended),
        metrics={name: _mean(name, found) for name, found in by_metric.items() if found},
        ratios=ratios,
    )


def _mean(metric: str, values: Sequence[float]) -> MeanInterval:
    """Geometric for rates and times, so that means and ratios tell one tale; else arithmetic."""
    if metric in RATIOS and min(values) > 0.0:
        return geometric_mean_interval(values, CONFIDENCE)
    return mean_interval(values, CONFIDENCE)


def _ratios(
    first: Mapping[int, Mapping[str, float]], cell: Mapping[int, Mapping[str, float]]
) -> dict[str, RatioInterval]:
    """Ratios to the first cell, of rounds in which both ended well and have a value above zero."""
    found = {}
    for metric in RATIOS:
        pairs = [
            (first[number].get(metric, 0.0), cell[number].get(metric, 0.0))
            for number in sorted(set(first) & set(cell))
        ]
        above = [(one, other) for one, other in pairs if one > 0.0 and other > 0.0]
        if len(above) >= MINIMUM_PAIRS:
            before, after = zip(*above, strict=True)
            found[metric] = paired_ratio(before, after, CONFIDENCE)
        elif above:
            # One pair has a ratio, and nothing says how far it may be off.
            ratio = above[0][1] / above[0][0]
            found[metric] = RatioInterval(ratio, 0.0, float("inf"), CONFIDENCE, 1)
    return found


def _failure(run: CellRun) -> Failure:
    error = run.measurement.error
    why = "" if error is None else error.message
    return Failure(run.cell, run.round, run.measurement.outcome.value, why)


def _warnings(runs: Sequence[CellRun]) -> list[str]:
    lines = [line for run in runs for line in run.measurement.warnings]
    for run in runs:
        lines += [
            f"{option.name}={option.requested} did not take: it is "
            f"{'not known' if option.effective is None else option.effective}"
            for option in run.measurement.options_not_taken
        ]
    return lines
