"""What a sweep found: from its runs to frozen tables, which reports render."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lsmtune.experiment.store import StoredMeasurement
from lsmtune.experiment.sweep import Axis, Sweep
from lsmtune.experiment.sweep_grid import GridCell, too_short
from lsmtune.model.config import Build, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, total_metric
from lsmtune.model.metrics import (
    BURST,
    PHASE_METRICS,
    PHASE_TOTAL_S,
    RATE_MB,
    SUSTAINED,
    SUSTAINED_MB,
    TOTAL_WITH_DRAIN_S,
    shown_in,
)
from lsmtune.model.workload import PhaseKind
from lsmtune.stats.intervals import (
    MINIMUM_PAIRS,
    MeanInterval,
    RatioInterval,
    geometric_mean_interval,
    mean_interval,
    paired_ratio,
)
from lsmtune.stats.pareto import interaction

MB = 10**6

METRICS = shown_in("sweep")
_OBSERVED = tuple(name for name in METRICS if name in PHASE_METRICS)
# Rates and times, which are compared with the first cell; the rest may be zero or is a count.
RATIOS = shown_in("sweep_ratio")


def metrics_of(measurement: Measurement, phase: PhaseMeasurement) -> dict[str, float]:
    """Every metric of `phase` that is known, by name.

    `throughput_mb_s` is keys and values that users wrote and read, over the time of the operations;
    `sustained_throughput_mb_s` over that and the time to flush and drain. `phase_with_drain_s` is
    that time; `total_with_drain_s` the sum of it over all measure phases of the run.
    """
    found: dict[str, float | None] = {name: getattr(phase, name) for name in _OBSERVED}
    moved = (phase.user_bytes_written or 0) + (phase.user_bytes_read or 0)
    if moved > 0 and phase.elapsed_s > 0:
        found[RATE_MB] = moved / MB / phase.elapsed_s
    if phase.drain_s is not None:
        found[PHASE_TOTAL_S] = phase.elapsed_s + phase.drain_s
        if moved > 0 and phase.elapsed_s > 0:
            found[SUSTAINED_MB] = moved / MB / (phase.elapsed_s + phase.drain_s)
    found[TOTAL_WITH_DRAIN_S] = total_metric(measurement, TOTAL_WITH_DRAIN_S)
    return {name: float(value) for name in METRICS if (value := found.get(name)) is not None}


# --- What a sweep found: frozen tables, which reports render.

# What decides which cell is the best one, and what the plots show: the first of these that the
# cells have. Programs of others' do not tell what is sustained.
RATES = (SUSTAINED, BURST)


@dataclass(frozen=True)
class AxisRow:
    """An axis as reports show it."""

    kind: str
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class CellSummary:
    """One cell in one table.

    `metrics` has mean, median and interval over the runs that ended `ok`, by name, without those
    that no such run observed. `ratios` compares with the table's first cell, paired by round;
    without those that cannot be had. `outcomes` counts how the runs ended.
    """

    cell: str
    point: tuple[int, ...]
    values: tuple[str, ...]
    options: Mapping[str, OptionValue]
    key_bytes: int
    value_bytes: int
    num: int
    outcomes: Mapping[str, int]
    metrics: Mapping[str, MeanInterval]
    ratios: Mapping[str, RatioInterval]

    @property
    def runs_ok(self) -> int:
        """How many runs ended well."""
        return self.outcomes.get("ok", 0)

    def value(self, metric: str) -> float | None:
        """The mean of `metric`, None where no run observed it."""
        found = self.metrics.get(metric)
        return None if found is None else found.mean


@dataclass(frozen=True)
class Table:
    """The cells of one measure phase of one workload, in the order of the grid.

    `metric` is the one of RATES that is compared, `best` the index of the cell with the highest;
    `notes` say what else there is to see.
    """

    workload: str
    phase: str
    metric: str
    cells: tuple[CellSummary, ...]
    best: int | None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The workload, with its phase where that has another name."""
        same = self.phase == self.workload
        return self.workload if same else f"{self.workload}: {self.phase}"


@dataclass(frozen=True)
class Failure:
    """A run that did not end `ok`."""

    cell: str
    round: int
    outcome: str
    why: str


@dataclass(frozen=True)
class RunRow:
    """What one run observed in one measure phase; for those who want to compute themselves."""

    workload: str
    phase: str
    cell: str
    values: tuple[str, ...]
    round: int
    seed: int
    outcome: str
    wall_s: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class SweepResult:
    """Everything that a sweep found so far; `runs_wanted` is more than `runs` while it goes on."""

    name: str
    engine: EngineIdentity
    axes: tuple[AxisRow, ...]
    repeats: int
    seed: int
    runs: int
    runs_wanted: int
    runs_s: float
    confidence: float
    tables: tuple[Table, ...]
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()
    rows: tuple[RunRow, ...] = field(default=(), repr=False)

    @property
    def varies_size(self) -> bool:
        """Whether records are of more than one size, so that MB/s and ops/s tell two tales."""
        cells = [cell for table in self.tables for cell in table.cells]
        return len({(cell.key_bytes, cell.value_bytes) for cell in cells}) > 1


# --- What a table of a sweep says beside its numbers: the best cell, edges, interaction, failures.

# With fewer values on an axis each of them is an edge.
_VALUES_WITH_A_MIDDLE = 3
_SIGNIFICANT = 0.05


def table_notes(
    axes: Sequence[Axis],
    cells: Sequence[CellSummary],
    best: int | None,
    values: Sequence[Mapping[int, float]],
    metric: str,
) -> list[str]:
    """A line for each thing to know; `values` of `metric` are those of each cell, by round."""
    if best is None:
        return ["no run of this table ended well"]
    lines = [_best(axes, cells[best], metric) + _as_good(values, best)]
    lines += _edges(axes, cells[best])
    lines += [line for line in (_interaction(axes, values),) if line]
    return lines + list(_missing(cells))


def _best(axes: Sequence[Axis], cell: CellSummary, metric: str) -> str:
    told = ", ".join(f"{a.name}={text}" for a, text in zip(axes, cell.values, strict=True))
    kind = "sustained" if metric.startswith("sustained") else "without the drain"
    return f"most operations per second, {kind}: {told}"


def _as_good(values: Sequence[Mapping[int, float]], best: int) -> str:
    """How many cells cannot be told from the best one by the rounds that both have."""
    others = [found for index, found in enumerate(values) if index != best]
    alike = sum(not _told_apart(values[best], other) for other in others)
    if not alike:
        return ""
    which = "all others" if alike == len(others) else f"{alike} of the {len(others)} others"
    return f"; {which} cannot be told from it by these rounds"


def _told_apart(best: Mapping[int, float], other: Mapping[int, float]) -> bool:
    rounds = [n for n in sorted(set(best) & set(other)) if best[n] > 0.0 and other[n] > 0.0]
    if len(rounds) < MINIMUM_PAIRS:
        return False
    return paired_ratio([best[n] for n in rounds], [other[n] for n in rounds]).excludes_one()


def _edges(axes: Sequence[Axis], cell: CellSummary) -> Iterator[str]:
    """Where the best cell has an end of an axis, the best value may lie beyond it."""
    for axis, index, text in zip(axes, cell.point, cell.values, strict=True):
        last = len(axis.values) - 1
        if len(axis.values) >= _VALUES_WITH_A_MIDDLE and index in (0, last):
            end = "first" if index == 0 else "last"
            yield (
                f"edge: {axis.name}={text} is the {end} value of its axis; "
                "what lies beyond it was not measured"
            )


def _interaction(axes: Sequence[Axis], values: Sequence[Mapping[int, float]]) -> str:
    """Whether one axis acts the same at all values of the others; empty where that cannot be told.

    Only rounds count in which every cell has a value.
    """
    rounds = set.intersection(*(set(found) for found in values)) if values else set()
    table = [[found[number] for number in sorted(rounds)] for found in values]
    grid = np.array(table, dtype=np.float64)
    if not rounds or not (grid > 0.0).all():
        return ""
    found = interaction(grid.reshape(*(len(axis.values) for axis in axes), len(rounds)))
    if found is None:
        return ""
    names = " and ".join(axis.name for axis in axes if len(axis.values) > 1)
    at = ", ".join(
        f"{axis.name}={axis.texts[index]}" for axis, index in zip(axes, found.cell, strict=True)
    )
    away = f"up to {100 * (found.largest - 1):.1f} % (at {at})"
    if found.p_value is None:
        return f"a factor for each of {names} explains the cells to within {away}; one repeat " + (
            "does not tell how much of that is noise"
        )
    told = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.2g}"
    if found.p_value < _SIGNIFICANT:
        return (
            f"interaction: {names} do not act independently: a factor for each leaves {away} "
            f"unexplained ({told})"
        )
    return f"no interaction of {names} seen beyond the noise of the repeats ({told})"


def _missing(cells: Sequence[CellSummary]) -> Iterator[str]:
    bad = sum(sum(cell.outcomes.values()) - cell.runs_ok for cell in cells)
    runs = sum(sum(cell.outcomes.values()) for cell in cells)
    if bad:
        yield f"{bad} of {runs} runs did not end well; their cells rest on the others"


# --- From the runs of a sweep to its tables: pure.

CONFIDENCE = 0.95

# Of one table: by cell, then by round, the metrics of a run that ended well.
_Values = Mapping[str, Mapping[int, Mapping[str, float]]]


def summarise(
    sweep: Sweep,
    cells: Sequence[GridCell],
    runs: Iterable[StoredMeasurement],
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


def _engine(asked: EngineIdentity, runs: Sequence[StoredMeasurement]) -> EngineIdentity:
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


def _ended_well(run: StoredMeasurement) -> bool:
    return run.measurement.outcome is Outcome.OK


def _rows(cells: Sequence[GridCell], runs: Sequence[StoredMeasurement]) -> Iterable[RunRow]:
    by_name = {cell.cell.name: cell for cell in cells}
    for run in runs:
        cell = by_name.get(run.arm)
        if cell is None:
            continue
        for name in cell.cell.workload.measured_phases:
            phase = _phase(run.measurement, name)
            yield RunRow(
                workload=cell.workload,
                phase=name,
                cell=run.arm,
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
    runs: Sequence[StoredMeasurement],
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
    cell: GridCell, first: GridCell, values: _Values, runs: Sequence[StoredMeasurement]
) -> CellSummary:
    name, workload = cell.cell.name, cell.cell.workload
    ended = Counter(run.measurement.outcome.value for run in runs if run.arm == name)
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


def _failure(run: StoredMeasurement) -> Failure:
    error = run.measurement.error
    why = "" if error is None else error.message
    return Failure(run.arm, run.round, run.measurement.outcome.value, why)


def _warnings(runs: Sequence[StoredMeasurement]) -> list[str]:
    lines = [line for run in runs for line in run.measurement.warnings]
    for run in runs:
        lines += [
            f"{option.name}={option.requested} did not take: it is "
            f"{'not known' if option.effective is None else option.effective}"
            for option in run.measurement.options_not_taken
        ]
    return lines
