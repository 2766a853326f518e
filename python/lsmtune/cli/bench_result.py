"""What `bench` says at its end: figures of each phase, the tree, noise. Nothing is printed here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from lsmtune.cli.output import failure_line
from lsmtune.experiment.run_length import factor_wanted, run_length, scaled_num
from lsmtune.model.codec import encode
from lsmtune.model.config import Build
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.metrics import BY_NAME, Metric, shown_in
from lsmtune.model.workload import PhaseKind, Workload
from lsmtune.report.document import (
    NOT_KNOWN,
    Block,
    Column,
    Notice,
    Notices,
    Paragraph,
    Table,
    numbers,
    words,
)
from lsmtune.report.history import RepeatRow, repeat_rows
from lsmtune.report.notices import condition_notices
from lsmtune.report.proof import level_numbers, middle, tree_depth
from lsmtune.report.sentences import condition_facts
from lsmtune.report.tables import Conditions
from lsmtune.report.terminal import blocks_view
from lsmtune.report.trust import conditions_of
from lsmtune.report.words import deviation, number, quantity, size
from lsmtune.workloads.stated import size_flags


def bench_document(measurements: Sequence[Measurement], workload: Workload) -> dict[str, object]:
    """What `bench --json` prints: the fields of the records, whole, and what they come to."""
    conditions = _conditions(measurements, workload)
    return {
        "measurements": encode(measurements),
        "repeats": encode(repeat_rows(measurements)),
        "conditions": encode(conditions),
        "notices": _notices(measurements, workload, conditions),
    }


def bench_view(
    measurements: Sequence[Measurement], workload: Workload, warnings: Sequence[str]
) -> RenderableType:
    """The result of `bench` for people: one column per phase, medians where runs were repeated."""
    good = [m for m in measurements if m.outcome is Outcome.OK]
    shown, conditions = good or list(measurements), _conditions(measurements, workload)
    first, engine = shown[0], shown[0].engine
    build = "" if engine.build is Build.UNKNOWN else f", {engine.build.value}"
    title = f"{engine.title}{build}: {first.workload}, seed {first.seed}"
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
        depth = tree_depth(runs) if runs[0].kind == PhaseKind.MEASURE else 0
        if depth:
            about = f"the tree at the end of {runs[0].name}, and compactions into each level:"
            blocks += [Paragraph(about), _tree(runs, depth)]
    checks = [m.verification for m in shown if m.verification is not None]
    if checks:
        checked = sum(check.keys_checked for check in checks)
        bad = sum(check.keys_lost + check.keys_wrong for check in checks)
        verdict = "all right" if bad == 0 else f"{bad} LOST OR WRONG"
        verified = f"verified: {checked:,} keys read back after reopening, {verdict}"
        blocks.append(Paragraph(verified))
    blocks += [Paragraph(f"{name}: {value}") for name, value in condition_facts(conditions)]
    lines = [*warnings, *_notices(measurements, workload, conditions), *_warnings(measurements)]
    blocks.append(Notices([Notice(line) for line in dict.fromkeys(lines)]))
    return blocks_view(blocks)


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


_TREE = {"files": number, "size": size, "compactions": number, "written by them": size}


def _tree(runs: Sequence[PhaseMeasurement], depth: int) -> Table:
    """The tree at the end of a measure phase, and what was written into its levels."""
    columns = [Column(label, told) for label, told in _TREE.items()]
    rows = [
        (level, *map(middle, zip(*(level_numbers(run, level) for run in runs), strict=True)))
        for level in range(depth)
    ]
    return Table([Column("level"), *columns], rows)


def _conditions(measurements: Sequence[Measurement], workload: Workload) -> Conditions:
    cache = workload.page_cache
    runs = [(measurement, cache) for measurement in measurements]
    return conditions_of(runs, {workload.name: cache}, os.cpu_count())


def _notices(
    measurements: Sequence[Measurement], workload: Workload, conditions: Conditions
) -> list[str]:
    """What makes the figures say less than they seem to: the last run's length, the conditions."""
    lines = [f"{notice.title}: {notice.text}" for notice in condition_notices(conditions)]
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
            effect = f"the engine uses {option.effective}"
            if option.effective is None:
                effect = "the engine does not say whether it took it"
            lines.append(f"option {option.name}={option.requested}: {effect}")
        lines += measurement.warnings
        if measurement.outcome is not Outcome.OK:
            lines.append(failure_line(measurement))
    return lines
