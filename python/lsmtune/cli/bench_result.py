"""What `bench` says at its end: figures of each phase, the tree, noise; runners side by side.

Nothing is printed here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from lsmtune.cli.output import failure_line
from lsmtune.experiment.run_length import factor_advised, length_warnings, scaled_num
from lsmtune.model.codec import encode
from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.metrics import BURST, BY_NAME, Metric, shown_in
from lsmtune.model.workload import PhaseKind, Workload
from lsmtune.programs.output import NATIVE
from lsmtune.programs.runner import RunnerChoice
from lsmtune.report.document import (
    NOT_KNOWN,
    Block,
    Notice,
    Notices,
    Paragraph,
    Table,
    numbers,
    words,
)
from lsmtune.report.history import RepeatRow, ratio, repeat_rows
from lsmtune.report.notices import condition_notices
from lsmtune.report.proof import TREE, tree_rows
from lsmtune.report.source import middle
from lsmtune.report.tables import Conditions
from lsmtune.report.trust import condition_facts, conditions_of
from lsmtune.report.words import deviation, quantity
from lsmtune.units import format_ratio
from lsmtune.workloads.stated import size_advice


def bench_document(
    measurements: Sequence[Measurement], workload: Workload, parameters: Mapping[str, object]
) -> dict[str, object]:
    """What `bench --json` prints: the fields of the records, whole, and what they come to.

    `parameters` are those that the workload was made with, none of a workload file.
    """
    conditions = _conditions(measurements, workload)
    return {
        "measurements": encode(measurements),
        "repeats": encode(repeat_rows(measurements)),
        "conditions": encode(conditions),
        "notices": _notices(measurements, workload, parameters, conditions),
    }


def bench_view(
    measurements: Sequence[Measurement],
    workload: Workload,
    parameters: Mapping[str, object],
    warnings: Sequence[str],
) -> list[Block]:
    """The result of `bench` for people: one column per phase, medians where runs were repeated.

    `parameters` are those that the workload was made with, none of a workload file.
    """
    good = [m for m in measurements if m.outcome is Outcome.OK]
    shown, conditions = good or list(measurements), _conditions(measurements, workload)
    first = shown[0]
    title = f"{_named(first.engine)}: {first.workload}, seed {first.seed}"
    blocks: list[Block] = [Paragraph(title, "title")]
    # Each phase with operations, in every measurement that finished it.
    names = dict.fromkeys(p.name for m in shown for p in m.phases if p.kind != "settle")
    phases = [[p for m in shown for p in m.phases if p.name == name] for name in names]
    if phases:
        blocks.append(_phase_table(phases))
    if len(good) > 1:
        blocks.append(Paragraph(f"median of {len(good)} runs ± half their range", "quiet"))
    blocks += map(Paragraph, _noise_lines(repeat_rows(good)))
    for runs in phases:
        levels = tree_rows(runs) if runs[0].kind == PhaseKind.MEASURE else []
        if levels:
            about = f"the tree at the end of {runs[0].name}, and compactions into each level:"
            blocks += [Paragraph(about), Table.of(TREE, levels)]
    checks = [m.verification for m in shown if m.verification is not None]
    if checks:
        checked = sum(check.keys_checked for check in checks)
        bad = sum(check.keys_lost + check.keys_wrong for check in checks)
        verdict = "all right" if bad == 0 else f"{bad} LOST OR WRONG"
        verified = f"verified: {checked:,} keys read back after reopening, {verdict}"
        blocks.append(Paragraph(verified))
    blocks += [Paragraph(f"{name}: {value}") for name, value in condition_facts(conditions)]
    notices = _notices(measurements, workload, parameters, conditions)
    lines = [*warnings, *notices, *_warnings(measurements)]
    blocks.append(Notices([Notice(line) for line in dict.fromkeys(lines)]))
    return blocks


def _phase_table(phases: Sequence[Sequence[PhaseMeasurement]]) -> Table:
    heads = [
        f"{runs[0].name}, {runs[0].threads} threads" if runs[0].threads > 1 else runs[0].name
        for runs in phases
    ]
    rows = [
        (metric.bench, *(_cell(metric, runs) for runs in phases))
        for metric in map(BY_NAME.__getitem__, shown_in("bench"))
    ]
    known = [row for row in rows if any(cell != NOT_KNOWN for cell in row[1:])]
    return Table((*words(""), *numbers(*heads)), known)


def _cell(metric: Metric, runs: Sequence[PhaseMeasurement]) -> str:
    values = [value for run in runs if (value := getattr(run, metric.name)) is not None]
    centre = middle(values)
    if len(values) < 2 or not centre:
        return quantity(metric.name, centre)
    spread = (max(values) - min(values)) / 2 / centre
    return f"{quantity(metric.name, centre)} ±{100 * spread:.0f} %"


def _noise_lines(rows: Sequence[RepeatRow]) -> Iterator[str]:
    """How much each metric scatters, by phase; nothing with too few runs."""
    for phase in dict.fromkeys(row.phase for row in rows):
        noises = {r.metric: r.noise for r in rows if r.phase == phase and r.noise is not None}
        shown = [metric for metric in shown_in("noise") if metric in noises]
        if shown:
            yield f"noise of {phase} from run to run, standard deviation (95 % CI):"
        for metric in shown:
            noise = noises[metric]
            interval = f"{deviation(noise.log_sd_low)} to {deviation(noise.log_sd_high)}"
            yield f"  {metric}: {deviation(noise.log_sd)} ({interval})"


def _conditions(measurements: Sequence[Measurement], workload: Workload) -> Conditions:
    cache = workload.page_cache
    runs = [(measurement, cache) for measurement in measurements]
    return conditions_of(runs, {workload.name: cache}, {"": os.cpu_count() or 0})


def _notices(
    measurements: Sequence[Measurement],
    workload: Workload,
    parameters: Mapping[str, object],
    conditions: Conditions,
) -> list[str]:
    """What makes the figures say less than they seem to: the last run's length, the conditions."""
    lines = [notice.line for notice in condition_notices(conditions)]
    last = next((m for m in reversed(measurements) if m.outcome is Outcome.OK), None)
    if last is None:
        return lines
    lines += length_warnings(last)
    num = scaled_num(workload.num, factor_advised(last) or 1.0)
    if num > workload.num:
        larger = size_advice(workload, num, parameters)
        lines.append(f"too short to say what is sustained; {larger} would do")
    return lines


def _warnings(measurements: Sequence[Measurement]) -> list[str]:
    lines = []
    for measurement in measurements:
        lines += [*map(str, measurement.options_not_taken), *measurement.warnings]
        if measurement.outcome is not Outcome.OK:
            lines.append(failure_line(measurement))
    return lines


# --- With `--runner all`: each runner side by side, and their ratios to ours

SETTLED = "settled_database_bytes"
ByRunner = Mapping[str, Sequence[Measurement]]  # a run or more of each
# Bytes of the database that each run of a runner left, once lsmtune's driver has settled it.
Settled = Mapping[str, Sequence[int]]


def figures(measured: ByRunner, settled: Settled) -> list[dict[str, object]]:
    """The median of each metric for each measure phase and runner, and its ratio to our driver's.

    Both are None where not known; runs that did not end well do not count. Bytes of the `settled`
    database are with the last phase.
    """
    rows = []
    names = _phase_names(measured)
    for phase in names:
        last = [SETTLED] if settled and phase == names[-1] else []
        for metric in [*shown_in("runners"), *last]:
            values = {
                name: settled.get(name, ()) if metric == SETTLED else _values(runs, phase, metric)
                for name, runs in measured.items()
            }
            own = middle(values.get(NATIVE, ()))
            for name, of_runner in values.items():
                value = middle(of_runner)
                figure = {"phase": phase, "runner": name, "metric": metric, "runs": len(of_runner)}
                rows.append({**figure, "median": value, "ratio_to_native": ratio(value, own)})
    return rows


def compare_document(
    arms: Sequence[RunnerChoice],
    measured: ByRunner,
    settled: Settled,
    warnings: Sequence[str],
    missing: Mapping[str, str],
) -> dict[str, object]:
    """What `bench --runner all --json` prints."""
    return {
        "runners": [
            {
                "runner": arm.name,
                "engine": encode(measured[arm.name][-1].engine),
                "note": arm.note,
                "measurements": encode(measured[arm.name]),
                SETTLED: list(settled.get(arm.name, ())),
            }
            for arm in arms
        ],
        "comparison": figures(measured, settled),
        "missing": [{"runner": name, "why": why} for name, why in missing.items()],
        "warnings": list(warnings),
    }


def compare_view(
    arms: Sequence[RunnerChoice],
    measured: ByRunner,
    settled: Settled,
    warnings: Sequence[str],
    missing: Mapping[str, str],
) -> list[Block]:
    """The same for people: a table for each measure phase, one column for each runner."""
    blocks: list[Block] = []
    for arm in arms:
        note = f"; {arm.note}" if arm.note else ""
        blocks.append(Paragraph(f"{arm.name}: {_named(measured[arm.name][-1].engine)}{note}"))
    names, lines = _phase_names(measured), list(warnings)
    for phase in names:
        last = settled if phase == names[-1] else {}
        table = _table(phase, arms, measured, last)
        blocks += [Paragraph(""), Paragraph(phase, "title"), table]
    runs = max(map(len, measured.values()))
    if runs > 1:
        blocks.append(Paragraph(f"medians of {runs} runs each, taken in turns", "quiet"))
    for name, of_runner in measured.items():
        for run in of_runner:
            lines += run.warnings
            lines += [] if run.outcome is Outcome.OK else [f"{name}: {failure_line(run)}"]
    blocks.append(Notices([Notice(line) for line in dict.fromkeys(lines)]))
    blocks += [Paragraph(f"not here: {name}: {why}", "quiet") for name, why in missing.items()]
    return blocks


def build_warnings(arms: Sequence[RunnerChoice]) -> list[str]:
    """Says so where the runners carry different builds of the engine."""
    builds = {(arm.engine.version, arm.engine.build) for arm in arms}
    if len(builds) < 2:
        return []
    builds_named = ", ".join(f"{arm.name} {_named(arm.engine)}" for arm in arms)
    return [f"ratios are also those of different engine builds: {builds_named}"]


def _named(engine: EngineIdentity) -> str:
    build = "" if engine.build is Build.UNKNOWN else f", {engine.build.value}"
    return f"{engine.title}{build}"


def _phase_names(measured: ByRunner) -> list[str]:
    """In the order of our driver, which performs all of them."""
    phases = (phase for runs in measured.values() for run in runs for phase in run.measured_phases)
    return list(dict.fromkeys(phase.name for phase in phases))


def _values(runs: Sequence[Measurement], phase: str, metric: str) -> list[float]:
    good = (each for run in runs if run.outcome is Outcome.OK for each in run.phases)
    values = (getattr(each, metric) for each in good if each.name == phase)
    return [float(value) for value in values if value is not None]


def _table(phase: str, arms: Sequence[RunnerChoice], measured: ByRunner, settled: Settled) -> Table:
    rows: list[tuple[str, ...]] = []
    for metric in map(BY_NAME.__getitem__, shown_in("bench")):
        medians = [middle(_values(measured[arm.name], phase, metric.name)) for arm in arms]
        if any(value is not None for value in medians):
            rows.append((metric.bench, *(quantity(metric.name, value) for value in medians)))
        if settled and metric.name == "database_bytes":
            sizes = (middle(settled.get(arm.name, ())) for arm in arms)
            settled_sizes = (quantity(metric.name, size) for size in sizes)
            rows.append((f"{metric.bench}, settled", *settled_sizes))
    bursts = {name: middle(_values(runs, phase, BURST)) for name, runs in measured.items()}
    ratios = (ratio(bursts[arm.name], bursts.get(NATIVE)) for arm in arms)
    shown = (NOT_KNOWN if each is None else f"{format_ratio(each)}x" for each in ratios)
    rows.append(("burst by native's", *shown))
    return Table((*words(""), *numbers(*(arm.name for arm in arms))), rows)
