"""What a sweep found: from its runs to frozen tables, which reports render."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lsmtune.experiment.store import StoredMeasurement
from lsmtune.experiment.sweep import Axis, Sweep
from lsmtune.experiment.sweep_grid import GridCell, too_short
from lsmtune.model.config import Build, EngineIdentity
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
from lsmtune.stats.intervals import (
    MINIMUM_PAIRS,
    MeanInterval,
    RatioInterval,
    geometric_mean_interval,
    mean_interval,
    paired_ratio,
)

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
    values: dict[str, float | None] = {name: getattr(phase, name) for name in _OBSERVED}
    values[TOTAL_WITH_DRAIN_S] = total_metric(measurement, TOTAL_WITH_DRAIN_S)
    moved = ((phase.user_bytes_written or 0) + (phase.user_bytes_read or 0)) / MB
    has_rate = moved > 0 and phase.elapsed_s > 0
    values[RATE_MB] = moved / phase.elapsed_s if has_rate else None
    if phase.drain_s is not None:
        whole_s = phase.elapsed_s + phase.drain_s
        values[PHASE_TOTAL_S] = whole_s
        values[SUSTAINED_MB] = moved / whole_s if has_rate else None
    return {name: float(value) for name in METRICS if (value := values.get(name)) is not None}


# --- What a sweep found: frozen tables, which reports render.

# What decides which cell is the best one, and what the plots show: the first of these that the
# cells have. Programs of others' do not tell what is sustained.
RATES = (SUSTAINED, BURST)


@dataclass(frozen=True)
class CellSummary:
    """One cell in one table.

    `metrics` has mean, median and interval over the runs that ended `ok`, by name, without those
    that no such run observed. `ratios` compares with the table's first cell, paired by round;
    without those that cannot be had. `outcomes` counts how the runs ended.
    """

    cell: GridCell
    outcomes: Mapping[str, int]
    metrics: Mapping[str, MeanInterval]
    ratios: Mapping[str, RatioInterval]

    @property
    def values(self) -> tuple[str, ...]:
        """Where the cell lies on each axis, as text."""
        return self.cell.values

    @property
    def runs_ok(self) -> int:
        """How many runs ended well."""
        return self.outcomes.get("ok", 0)

    def value(self, metric: str) -> float | None:
        """The mean of `metric`, None where no run observed it."""
        return self.metrics[metric].mean if metric in self.metrics else None


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

    cell: GridCell
    phase: str
    run: StoredMeasurement
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class SweepResult:
    """Everything that a sweep found so far; `runs_wanted` is more than `runs` while it goes on."""

    name: str
    engine: EngineIdentity
    axes: tuple[Axis, ...]
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
        workloads = [each.cell.workload for table in self.tables for each in table.cells]
        return len({(each.key_bytes, each.value_bytes) for each in workloads}) > 1


# --- What a table of a sweep says beside its numbers: the best cell, edges, failures.

# With fewer values on an axis each of them is an edge.
_VALUES_WITH_A_MIDDLE = 3


def _notes(
    axes: Sequence[Axis],
    cells: Sequence[CellSummary],
    best: int | None,
    values: Sequence[Mapping[int, float]],
    metric: str,
) -> list[str]:
    """A line for each thing to know; `values` of `metric` are those of each cell, by round."""
    if best is None:
        return ["no run of this table ended well"]
    cell = cells[best].cell
    chosen = ", ".join(f"{a.name}={text}" for a, text in zip(axes, cell.values, strict=True))
    kind = "sustained" if metric.startswith("sustained") else "without the drain"
    line = f"most operations per second, {kind}: {chosen}"
    others = [rates for index, rates in enumerate(values) if index != best]
    # Bonferroni over the others. Only what the truly fastest cell meets can leave it out, whichever
    # cell came out first: it is that one or among those not told apart (J. C. Hsu, "Constrained
    # simultaneous confidence intervals for multiple comparisons with the best", Annals of
    # Statistics 12, 1984).
    each = 1.0 - (1.0 - CONFIDENCE) / max(1, len(others))
    alike = sum(not _told_apart(values[best], other, each) for other in others)
    if alike:
        which = "all others" if alike == len(others) else f"{alike} of the {len(others)} others"
        line += f"; {which} cannot be told from it by these rounds"
    lines = [line]
    for axis, index, text in zip(axes, cell.point, cell.values, strict=True):
        last = len(axis.values) - 1
        if len(axis.values) >= _VALUES_WITH_A_MIDDLE and index in (0, last):
            end = "first" if index == 0 else "last"
            lines.append(
                f"edge: {axis.name}={text} is the {end} value of its axis; "
                "what lies beyond it was not measured"
            )
    runs = sum(sum(cell.outcomes.values()) for cell in cells)
    bad = runs - sum(cell.runs_ok for cell in cells)
    if bad:
        lines.append(f"{bad} of {runs} runs did not end well; their cells rest on the others")
    return lines


def _told_apart(best: Mapping[int, float], other: Mapping[int, float], confidence: float) -> bool:
    """Whether the rounds that both have show that the `other` is slower, at `confidence`.

    It may be the faster one in these, where the best has the better mean by others of its own.
    """
    rounds = [n for n in sorted(set(best) & set(other)) if best[n] > 0.0 and other[n] > 0.0]
    if len(rounds) < MINIMUM_PAIRS:
        return False
    sides = [best[n] for n in rounds], [other[n] for n in rounds]
    return paired_ratio(*sides, confidence).high < 1.0


# --- From the runs of a sweep to its tables: pure.

CONFIDENCE = 0.95


def summarise(
    sweep: Sweep,
    cells: Sequence[GridCell],
    runs: Iterable[StoredMeasurement],
    warnings: Sequence[str] = (),
) -> SweepResult:
    """The tables of `runs`, one per workload and measure phase, as far as they were performed."""
    done = sorted(runs, key=lambda run: run.round)
    rows = tuple(_rows(cells, done))
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    lines = [*warnings, *too_short(cells, done)]
    failures = []
    for run in done:
        measurement, outcome = run.measurement, run.measurement.outcome
        outcomes[run.arm][outcome.value] += 1
        lines += [*measurement.warnings, *map(str, measurement.options_not_taken)]
        if outcome is not Outcome.OK:
            failures.append(Failure(run.arm, run.round, outcome.value, measurement.message))
    tables = []
    for workload in dict.fromkeys(cell.workload_title for cell in cells):
        ours = [cell for cell in cells if cell.workload_title == workload]
        of_workload = [row for row in rows if row.cell.workload_title == workload]
        for phase in ours[0].workload.measured_names:
            of_phase = [row for row in of_workload if row.phase == phase]
            tables.append(_table(sweep.axes, workload, phase, ours, of_phase, outcomes))
    # The engine in its own words, where it said any; how it was built only the request knows.
    engine = cells[0].engine
    answers = [run.measurement.engine for run in done if run.measurement.engine.version]
    if answers:
        build = engine.build if answers[0].build is Build.UNKNOWN else answers[0].build
        engine = EngineIdentity(answers[0].name, answers[0].version, engine.library, build)
    repeats = max([sweep.repeats, *(run.round + 1 for run in done)])
    return SweepResult(
        name=sweep.name,
        engine=engine,
        axes=sweep.axes,
        repeats=repeats,
        seed=sweep.seed,
        runs=len(done),
        # Of rounds that an earlier command began, nothing more is wanted.
        runs_wanted=len(cells) * sweep.repeats + sum(run.round >= sweep.repeats for run in done),
        runs_s=sum(run.wall_s for run in done),
        confidence=CONFIDENCE,
        tables=tuple(tables),
        failures=tuple(failures),
        warnings=tuple(dict.fromkeys(lines)),
        rows=rows,
    )


def _rows(cells: Sequence[GridCell], runs: Sequence[StoredMeasurement]) -> Iterator[RunRow]:
    by_name = {cell.name: cell for cell in cells}
    for run in runs:
        cell = by_name.get(run.arm)
        if cell is None:
            continue
        measured = run.measurement.measured_phases
        for name in cell.workload.measured_names:
            phase = next((phase for phase in measured if phase.name == name), None)
            metrics = {} if phase is None else metrics_of(run.measurement, phase)
            yield RunRow(cell, name, run, metrics)


def _table(
    axes: Sequence[Axis],
    workload: str,
    phase: str,
    cells: Sequence[GridCell],
    rows: Sequence[RunRow],
    outcomes: Mapping[str, Mapping[str, int]],
) -> Table:
    # By cell, then by round, the metrics of a run that ended well.
    values: dict[str, dict[int, Mapping[str, float]]] = {cell.name: {} for cell in cells}
    for row in rows:
        if row.run.measurement.outcome is Outcome.OK:
            values[row.cell.name][row.run.round] = row.metrics
    first = values[cells[0].name]
    summaries = [
        _summary(cell, values[cell.name], None if cell is cells[0] else first, outcomes)
        for cell in cells
    ]
    metric = next((m for m in RATES if any(m in s.metrics for s in summaries)), RATES[0])
    means = [-math.inf if (mean := s.value(metric)) is None else mean for s in summaries]
    # Of equal values the first cell of the grid.
    best = means.index(max(means)) if max(means) > -math.inf else None
    rates = [
        {number: run[metric] for number, run in by_round.items() if metric in run}
        for by_round in values.values()
    ]
    notes = _notes(axes, summaries, best, rates, metric)
    return Table(workload, phase, metric, tuple(summaries), best, tuple(notes))


def _summary(
    cell: GridCell,
    values: Mapping[int, Mapping[str, float]],
    first: Mapping[int, Mapping[str, float]] | None,
    outcomes: Mapping[str, Mapping[str, int]],
) -> CellSummary:
    """One cell by the metrics of its rounds, compared with those of the `first` cell, if any."""
    metrics = {}
    for metric in METRICS:
        of_metric = [run[metric] for run in values.values() if metric in run]
        if of_metric:
            # Geometric for rates and times, so that means and ratios tell one tale.
            is_ratio = metric in RATIOS and min(of_metric) > 0.0
            mean = geometric_mean_interval if is_ratio else mean_interval
            metrics[metric] = mean(of_metric, CONFIDENCE)
    ratios = {} if first is None else _ratios(first, values)
    return CellSummary(cell, dict(outcomes.get(cell.name, {})), metrics, ratios)


def _ratios(
    first: Mapping[int, Mapping[str, float]], cell: Mapping[int, Mapping[str, float]]
) -> dict[str, RatioInterval]:
    """Ratios to the first cell, of rounds in which both ended well and have a value above zero."""
    ratios = {}
    for metric in RATIOS:
        pairs = [
            (first[number].get(metric, 0.0), cell[number].get(metric, 0.0))
            for number in sorted(set(first) & set(cell))
        ]
        above = [(one, other) for one, other in pairs if one > 0.0 and other > 0.0]
        if len(above) >= MINIMUM_PAIRS:
            before, after = zip(*above, strict=True)
            ratios[metric] = paired_ratio(before, after, CONFIDENCE)
        elif above:
            # One pair has a ratio, and nothing says how far it may be off.
            ratio = above[0][1] / above[0][0]
            ratios[metric] = RatioInterval(ratio, 0.0, float("inf"), 1)
    return ratios
