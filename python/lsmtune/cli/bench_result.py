"""What `bench` says at its end: figures of each phase, the tree, noise. Nothing is printed here."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from lsmtune.cli.output import NOT_KNOWN, failure_line
from lsmtune.experiment.run_length import factor_wanted, run_length, scaled_num
from lsmtune.machine.host import cores_present
from lsmtune.model.codec import encode
from lsmtune.model.config import Build
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.metrics import BY_NAME, Metric, shown_in
from lsmtune.model.workload import PhaseKind, Workload
from lsmtune.report.document import Column, Table, numbers, words
from lsmtune.report.history import RepeatRow, repeat_rows
from lsmtune.report.notices import condition_notices
from lsmtune.report.proof import level_numbers, middle, tree_depth
from lsmtune.report.sentences import condition_facts
from lsmtune.report.tables import Conditions
from lsmtune.report.terminal import terminal_table
from lsmtune.report.trust import conditions_of
from lsmtune.report.words import deviation
from lsmtune.units import format_bytes, format_duration
from lsmtune.workloads.stated import size_flags


def count(value: float) -> str:
    """`1,234,567`."""
    return f"{value:,.0f}"


def rate(value: float) -> str:
    """Operations per second."""
    return f"{value:,.0f} ops/s"


def micros(value: float) -> str:
    """Microseconds in the unit that keeps the number short."""
    for limit, unit in ((1e3, "us"), (1e6, "ms")):
        if value < limit:
            return f"{value * 1e3 / limit:.3g} {unit}"
    return f"{value / 1e6:.3g} s"


def _bytes(value: float) -> str:
    return format_bytes(round(value))


def metric_text(metric: Metric, value: float) -> str:
    """`value` in the terminal, by the unit of its metric."""
    if metric.name.endswith("_amplification"):
        return f"{value:.2f}"
    by_unit = {"ops/s": rate, "µs": micros, "bytes": _bytes, "s": format_duration}
    return by_unit.get(metric.unit, count)(value)


def bench_document(measurements: Sequence[Measurement], workload: Workload) -> dict[str, object]:
    """What `bench --json` prints: the fields of the records, whole, and what they come to."""
    found = _conditions(measurements, workload)
    return {
        "measurements": [encode(measurement) for measurement in measurements],
        "repeats": [encode(row) for row in repeat_rows(measurements)],
        "conditions": encode(found),
        "notices": _notices(measurements, workload, found),
    }


def bench_view(
    measurements: Sequence[Measurement], workload: Workload, warnings: Sequence[str]
) -> RenderableType:
    """The result of `bench` for people: one column per phase, medians where runs were repeated."""
    good = [m for m in measurements if m.outcome is Outcome.OK]
    shown, found = good or list(measurements), _conditions(measurements, workload)
    parts: list[RenderableType] = [Text(_title(shown[0]), style="bold")]
    phases = phases_of(shown)
    if phases:
        parts.append(_phase_table(phases))
    if len(good) > 1:
        parts.append(Text(f"median of {len(good)} runs ± half their range", style="dim"))
    parts += [Text(line) for line in _noise_lines(repeat_rows(good))]
    parts += _trees(phases)
    parts += [Text(line) for line in _facts(shown)]
    parts += [Text(f"{name}: {value}") for name, value in condition_facts(found)]
    lines = [*warnings, *_notices(measurements, workload, found), *_warnings(measurements)]
    parts += [Text(f"warning: {line}", style="yellow") for line in dict.fromkeys(lines)]
    return Group(*parts)


def phases_of(measurements: Sequence[Measurement]) -> list[list[PhaseMeasurement]]:
    """For each phase with operations, that phase in every measurement that finished it."""
    names = dict.fromkeys(p.name for m in measurements for p in m.phases if p.kind != "settle")
    return [[p for m in measurements for p in m.phases if p.name == name] for name in names]


def _title(measurement: Measurement) -> str:
    engine = measurement.engine
    build = "" if engine.build is Build.UNKNOWN else f", {engine.build.value}"
    version = f" {engine.version}" if engine.version else ""
    return f"{engine.name}{version}{build}: {measurement.workload}, seed {measurement.seed}"


def _phase_table(phases: Sequence[Sequence[PhaseMeasurement]]) -> RenderableType:
    heads = [
        f"{runs[0].name}, {runs[0].threads} threads" if runs[0].threads > 1 else runs[0].name
        for runs in phases
    ]
    rows = [
        (metric.bench, *(_cell(metric, runs) for runs in phases))
        for metric in map(BY_NAME.__getitem__, shown_in("bench"))
    ]
    known = [row for row in rows if any(cell != NOT_KNOWN for cell in row[1:])]
    return terminal_table(Table((*words(""), *numbers(*heads)), known))


def _cell(metric: Metric, runs: Sequence[PhaseMeasurement]) -> str:
    values = [value for run in runs if (value := getattr(run, metric.name)) is not None]
    if not values:
        return NOT_KNOWN
    middle_value = statistics.median(values)
    if len(values) == 1 or middle_value == 0:
        return metric_text(metric, middle_value)
    spread = (max(values) - min(values)) / 2 / middle_value
    return f"{metric_text(metric, middle_value)} ±{100 * spread:.0f} %"


def _noise_lines(rows: Sequence[RepeatRow]) -> Iterator[str]:
    """How much each metric scatters, by phase; nothing with too few runs."""
    for phase in dict.fromkeys(row.phase for row in rows):
        told = [
            f"  {row.metric}: {deviation(row.noise.log_sd)} "
            f"({deviation(row.noise.log_sd_low)} to {deviation(row.noise.log_sd_high)})"
            for metric in shown_in("noise")
            for row in rows
            if (row.phase, row.metric) == (phase, metric) and row.noise is not None
        ]
        if told:
            yield f"noise of {phase} from run to run, standard deviation (95 % CI):"
            yield from told


def _trees(phases: Sequence[Sequence[PhaseMeasurement]]) -> Iterator[RenderableType]:
    """The tree at the end of each measure phase, and what was written into its levels."""
    for runs in phases:
        depth = tree_depth(runs) if runs[0].kind == PhaseKind.MEASURE else 0
        if depth:
            yield Text(f"the tree at the end of {runs[0].name}, and compactions into each level:")
            yield _tree(runs, depth)


_TREE = {"files": count, "size": _bytes, "compactions": count, "written by them": _bytes}


def _known(told: Callable[[float], str], value: float | None) -> str:
    return NOT_KNOWN if value is None else told(value)


def _tree(runs: Sequence[PhaseMeasurement], depth: int) -> RenderableType:
    columns = [
        Column("level"),
        *(Column(label, partial(_known, told)) for label, told in _TREE.items()),
    ]
    rows = [
        (level, *map(middle, zip(*(level_numbers(run, level) for run in runs), strict=True)))
        for level in range(depth)
    ]
    return terminal_table(Table(columns, rows))


def _conditions(measurements: Sequence[Measurement], workload: Workload) -> Conditions:
    cache = workload.page_cache
    runs = [(measurement, cache) for measurement in measurements]
    return conditions_of(runs, {workload.name: cache}, cores_present())


def _facts(measurements: Sequence[Measurement]) -> list[str]:
    """Verification, and options that did not take: the same in every repeat, or said."""
    checks = [m.verification for m in measurements if m.verification is not None]
    lines = []
    if checks:
        checked = sum(check.keys_checked for check in checks)
        bad = sum(check.keys_lost + check.keys_wrong for check in checks)
        verdict = "all right" if bad == 0 else f"{bad} LOST OR WRONG"
        lines.append(f"verified: {count(checked)} keys read back after reopening, {verdict}")
    return lines


def _notices(
    measurements: Sequence[Measurement], workload: Workload, found: Conditions
) -> list[str]:
    """What makes the figures say less than they seem to: the last run's length, the conditions."""
    lines = [f"{notice.title}: {notice.text}" for notice in condition_notices(found)]
    last = next((m for m in reversed(measurements) if m.outcome is Outcome.OK), None)
    if last is None:
        return lines
    lines += run_length(last)
    num = scaled_num(workload.num, factor_wanted(last) or 1.0)
    if num > workload.num:
        flags = size_flags(workload, num)
        lines.append(f"too short to say what is sustained; {flags} would do")
    return lines


def _warnings(measurements: Sequence[Measurement]) -> list[str]:
    lines = []
    for measurement in measurements:
        for option in measurement.options_not_taken:
            if option.effective is None:
                effect = "the engine does not say whether it took it"
            else:
                effect = f"the engine uses {option.effective}"
            lines.append(f"option {option.name}={option.requested}: {effect}")
        lines += measurement.warnings
        if measurement.outcome is not Outcome.OK:
            lines.append(failure_line(measurement))
    return lines
