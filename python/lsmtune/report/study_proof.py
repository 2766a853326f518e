"""A study's report, the proof: verdict, what to deploy, pairs, burst and sustained, latency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.model.metrics import PERCENTILES
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Durability
from lsmtune.proof.crash_test import CrashOutcome
from lsmtune.report import figures, sentences
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import (
    Answer,
    Block,
    Cell,
    Column,
    Facts,
    Files,
    Heading,
    IntervalBar,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
    Value,
    headed,
    numbers,
    plot_blocks,
    words,
)
from lsmtune.report.study_search import (
    quantity_column,
)
from lsmtune.report.tables import (
    Arm,
    LatencyCurve,
    OptionRow,
    PairRow,
)
from lsmtune.report.trust_tables import LevelRow
from lsmtune.workloads.describe import mixed_phases

_DURABILITY = {
    Durability.SYNC: "synced writes",
    Durability.WAL: "write-ahead log",
    Durability.NONE: "no write-ahead log",
}
_RATIO = Column("ratio", text.ratio)
_BASELINE_AND_TUNED = numbers("baseline", "tuned")


# --- The verdict, and what to deploy


def verdict_section(analysis: StudyAnalysis, head: sentences.Headline) -> Section:
    """What was proved, and how."""
    crash = analysis.crash_test
    details = [head.detail, *sentences.proof_lines(analysis.verdict, analysis.proof)]
    blocks: list[Block] = [
        Answer(head.label, head.figure, head.lead, interval_bar(analysis.verdict)),
        *(Paragraph(line, "detail") for line in details),
    ]
    if crash is not None:
        bad = crash.outcome is CrashOutcome.FAILED
        blocks.append(Paragraph(sentences.crash_words(crash), "detail fail" if bad else "detail"))
    rows = _compared(analysis)
    if rows:
        columns = (*words(""), *_BASELINE_AND_TUNED)
        blocks.append(Table(columns, rows, "Both configurations", style="compared"))
    return Section("verdict", head.label, blocks, "Verdict", head.tone, top=True)


_MARGIN = 0.18  # of the bar's span, on either side, so that no mark touches an end


def interval_bar(verdict: Verdict | None) -> IntervalBar | None:
    """The bar on a log scale of ratios, or None without a finite interval above zero."""
    if verdict is None:
        return None
    ratios = (1.0, verdict.ratio_low, verdict.ratio_high, verdict.ratio)
    known = [r for r in ratios if r is not None and math.isfinite(r) and r > 0]
    if len(known) < len(ratios):
        return None
    logs = [math.log(r) for r in known]
    span = max(max(logs) - min(logs), 0.02)
    start = min(logs) - _MARGIN * span
    whole = max(logs) - min(logs) + 2 * _MARGIN * span
    one, low, high, ratio = (round(100 * (place - start) / whole, 2) for place in logs)
    ends = f"{text.ratio(verdict.ratio_low)} to {text.ratio(verdict.ratio_high)}"
    label = f"Ratio to the baseline {text.ratio(verdict.ratio)}, interval {ends}"
    return IntervalBar(one, low, high, ratio, label, ends)


def _compared(analysis: StudyAnalysis) -> list[tuple[str, str, str]]:
    """Figures of both arms that go with the verdict: the objective, then latencies."""
    metric, medians = analysis.metric, analysis.medians
    rows = []
    if len(medians) == len(Arm):
        baseline, tuned = (text.quantity(metric, medians[arm]) for arm in Arm)
        rows.append((text.metric_label(metric), baseline, tuned))
    for operation, curves in _latency_rows(analysis):
        if analysis.arms_from_proof and len(curves) == len(Arm):
            for name in ("latency_us_p50", "latency_us_p99"):
                before, after = (text.quantity(name, getattr(curves[arm], name)) for arm in Arm)
                rows.append((f"{operation} latency, {_statistic(name)}", before, after))
    return rows


def deploy_section(analysis: StudyAnalysis, proven: bool) -> Section:
    """The options beside the baseline's, and the files that hold them."""
    title = "The candidate" if analysis.options and not proven else "Deploy"
    if not analysis.options:
        why = "No trial has given a value yet, so there is nothing to deploy."
        return Section("deploy", title, [Paragraph(why, "quiet"), *_files(analysis)], top=True)
    number = analysis.tuned_trial
    of = "Options of the candidate" if number is None else f"Options of trial {number}"
    end = "." if proven else "; not proven to be better."
    tuned = [row for row in analysis.options if row.tuned_by_study]
    fixed = [row for row in analysis.options if not row.tuned_by_study]
    fold = f"{text.count(len(fixed), 'option')} outside the space"
    blocks = [
        Paragraph(f"{of}, beside the baseline's{end}", "note"),
        _options_table(tuned),
        *([_options_table(fixed, fold)] if fixed else []),
        *_files(analysis),
    ]
    return Section("deploy", title, blocks, "Deploy", top=True)


def _options_table(rows: Sequence[OptionRow], fold: str = "") -> Table:
    cells = [
        (
            row.name,
            _option_cell(row.baseline, row.unit, row.engine_default),
            _option_cell(row.tuned, row.unit),
        )
        for row in rows
    ]
    same = {number: "same" for number, row in enumerate(rows) if not row.changed}
    columns = (*words("option", "baseline"), Column("tuned", number=False, style="to"))
    return Table(columns, cells, "Tuned options", same, fold, style="options")


def _option_cell(value: OptionValue | None, unit: str, default: OptionValue | None = None) -> Cell:
    if value is not None:
        return Cell(text.option_told(value, unit))
    known = "" if default is None else f" {text.option_told(default, unit)}"
    return Cell(f"default{known}", tone="sys")


def _files(analysis: StudyAnalysis) -> list[Block]:
    if analysis.result_files:
        return [Files([str(path) for path in analysis.result_files], "Files to deploy")]
    if not analysis.options:
        return []
    return [Paragraph("Write it as a file:", "quiet", f"lsmtune export {analysis.path}")]


def warnings_section(analysis: StudyAnalysis) -> Section:
    """What to know before trusting or deploying."""
    none = "No warnings: every option taken, no best value on an edge, no failed run."
    items = [Notice(n.text, n.title, n.severity.value) for n in analysis.notices]
    block = Notices(items) if items else Paragraph(none, "quiet")
    return Section("warnings", "Warnings", [block])


def machine_section(analysis: StudyAnalysis) -> Section:
    """Under what the figures were measured."""
    facts: list[tuple[str, str]] = []
    for engine in analysis.engines:
        facts.append(("engine", f"{engine.name} {engine.version or '(version not known)'}"))
        facts.append(("build", engine.build.value))
    if not analysis.engines:
        facts.append(("engine", "no run yet"))
    facts += analysis.machine.items() or [("machine", "not recorded")]
    for weighted in analysis.workloads:
        workload = weighted.workload
        sizes = f"{text.size(workload.key_bytes)} and {text.size(workload.value_bytes)}"
        facts += [
            ("workload", weighted.label),
            ("keys", text.number(workload.num)),
            ("key and value", sizes),
            *(("phase", line) for line in mixed_phases(workload)),
            ("durability", _DURABILITY[workload.durability]),
        ]
    measured = f"{text.count(len(analysis.runs), 'run')}, {text.seconds(analysis.measured_s)}"
    facts += sentences.condition_facts(analysis.conditions)
    facts += [("begun", text.moment(analysis.started_unix_s)), ("measured", measured)]
    facts += [("library", e.library or "built into the driver") for e in analysis.engines]
    facts.append(("study folder", str(analysis.path)))
    wide = frozenset({"library", "study folder"})
    return Section("machine", "Machine and engine", [Facts(facts, wide)])


# --- The proof


def pairs_section(analysis: StudyAnalysis) -> Section:
    """The pairs of the proof, and every metric beside the one that decides."""
    return Section(
        "pairs",
        "Tuned against default",
        [
            *_pair_blocks(analysis),
            *_by_workload(analysis),
            *_other_metrics(analysis),
            *_series(analysis),
        ],
    )


def _pair_blocks(analysis: StudyAnalysis) -> list[Block]:
    metric = analysis.metric
    if not analysis.pairs:
        end = ": the proof comes after the search." if analysis.verdict is None else "."
        return [Paragraph(f"No pair has been run{end}", "quiet")]
    note = sentences.pairs_note(analysis.pairs, len(analysis.workloads))
    shown = (
        f"Shown is {text.metric_label(metric)}: {sentences.direction_words(analysis.direction)}."
    )
    rows = [_pair_cells(number, row) for number, row in enumerate(analysis.pairs, 1)]
    columns = (
        *words("pair"),
        quantity_column("baseline", metric),
        quantity_column("tuned", metric),
        _RATIO,
    )
    plot = plot_blocks("pairs", "Both configurations in each pair", figures.pairs_figure(analysis))
    return [
        Paragraph(f"{note} {shown}", "note"),
        *plot,
        Table(columns, rows, "Pairs", fold="Figures" if plot else ""),
    ]


def _pair_cells(number: int, row: PairRow) -> tuple[Value, ...]:
    def side(value: float | None, outcome: Outcome | None) -> Value:
        if value is not None:
            return value
        return Cell(text.outcome(outcome.value) if outcome else "not run", tone="fail")

    name = f"{number}{'' if row.counts else ' (does not count)'}"
    baseline = side(row.baseline_value, row.baseline_outcome)
    return (name, baseline, side(row.tuned_value, row.tuned_outcome), row.ratio)


def _by_workload(analysis: StudyAnalysis) -> list[Block]:
    rows = [
        (
            row.workload,
            text.share(row.share),
            Cell(text.metric_label(row.objective)),
            text.quantity(row.metric, row.baseline),
            text.quantity(row.metric, row.tuned),
            row.ratio,
        )
        for row in analysis.by_workload
    ]
    columns = (*words("workload"), *numbers("weight"), *words("objective"), *_BASELINE_AND_TUNED)
    return headed("By workload", (*columns, _RATIO), rows)


def _other_metrics(analysis: StudyAnalysis) -> list[Block]:
    verdict = analysis.verdict
    if verdict is None or not verdict.others:
        return []
    better = {"maximize": "higher", "minimize": "lower"}
    rows = [
        (
            text.metric_label(other.metric),
            better.get(other.direction, ""),
            other.ratio,
            f"{text.ratio(other.ratio_low)} to {text.ratio(other.ratio_high)}",
        )
        for other in verdict.others
    ]
    title = "Each metric by itself"
    columns = (*words("metric", "better is"), _RATIO, *numbers("interval"))
    note = Paragraph(sentences.correction_line(verdict, analysis.proof), "quiet")
    return [Heading(title), note, Table(columns, rows, title)]


def _series(analysis: StudyAnalysis) -> list[Block]:
    label = "Throughput over time of both configurations"
    plot = plot_blocks("series", label, figures.series_figure(analysis))
    note = f"One line per run, from the {_source(analysis)}."
    return [Heading("Throughput over time"), Paragraph(note, "quiet"), *plot] if plot else []


# --- Burst and sustained, latency


def sustained_section(analysis: StudyAnalysis) -> Section:
    """Burst, sustained and drain of both arms, and the trees they left."""
    title = "Burst and sustained"
    if not analysis.performance:
        none = Paragraph("No run has finished a measure phase yet.", "quiet")
        return Section("sustained", title, [none])
    note = (
        f"Medians of the {_source(analysis)}. The burst ends with the last call; sustained charges "
        "the drain, in which what was left is flushed and compacted."
    )
    blocks: list[Block] = [Paragraph(note, "note")]
    columns = (*words("figure"), *_BASELINE_AND_TUNED, _RATIO)
    for (workload, phase), rows in groupby(analysis.performance, lambda r: (r.workload, r.phase)):
        of = f"{phase}{f' under {workload}' if workload else ''}"
        figures_of_phase = [
            (
                sentences.performance_label(row.metric),
                text.quantity(row.metric, row.baseline),
                text.quantity(row.metric, row.tuned),
                row.ratio,
            )
            for row in rows
        ]
        table = Table(columns, figures_of_phase, f"Burst and sustained of {phase}")
        blocks += [Heading(of), table]
        for arm in Arm:
            levels = [
                row
                for row in analysis.levels
                if (row.workload, row.phase, row.arm) == (workload, phase, arm)
            ]
            blocks += [_levels_table(phase, arm, levels)] if levels else []
    return Section("sustained", title, blocks)


def _levels_table(phase: str, arm: Arm, rows: Sequence[LevelRow]) -> Table:
    cells = [
        (
            row.level,
            row.files,
            row.bytes,
            text.number(row.flushes) if row.level == 0 else "",
            row.compactions,
            row.compaction_write_bytes,
        )
        for row in rows
    ]
    columns = (
        *numbers("level"),
        Column("files", text.number),
        quantity_column("size", "database_bytes"),
        *numbers("flushes"),
        Column("compactions", text.number),
        quantity_column("written by them", "database_bytes"),
    )
    fold = f"The tree at its end, and what was written into each level: {arm.value}"
    return Table(columns, cells, f"Levels of {phase}, {arm.value}", fold=fold)


def _statistic(metric: str) -> str:
    """`median` or `p99`, of a latency."""
    return text.metric_label(metric).removesuffix(" latency")


def _latency_rows(analysis: StudyAnalysis) -> list[tuple[str, dict[Arm, LatencyCurve]]]:
    """The curves by operation type, then by arm."""
    rows: dict[str, dict[Arm, LatencyCurve]] = {}
    for curve in analysis.latencies:
        rows.setdefault(curve.operation, {})[curve.arm] = curve
    return sorted(rows.items())


def latency_section(analysis: StudyAnalysis) -> Section:
    """Percentiles of both arms, by operation type."""
    title, all_rows = "Latency percentiles", _latency_rows(analysis)
    if not all_rows:
        none = Paragraph("No run has stored a latency histogram yet.", "quiet")
        return Section("latency", title, [none], "Latency")
    note = (
        f"Whole histograms of the {_source(analysis)}, merged per configuration. To the right lie "
        "the slow operations."
    )
    blocks: list[Block] = [Paragraph(note, "note")]
    shown = (*PERCENTILES, "latency_us_max")
    for number, (operation, curves) in enumerate(all_rows):
        columns = (
            *words(operation),
            Column("operations", text.number),
            *(Column(_statistic(metric), text.duration_us) for metric in shown),
        )
        rows = [
            (arm.value, curve.count, *(getattr(curve, metric) for metric in shown))
            for arm, curve in curves.items()
        ]
        blocks += [Heading(operation)] if len(all_rows) > 1 else []
        figure = figures.latency_figure(analysis, operation)
        blocks += plot_blocks(f"latency-{number}", f"Latency percentiles of {operation}", figure)
        blocks.append(Table(columns, rows, f"Latency of {operation}"))
    return Section("latency", title, blocks, "Latency")


def _source(analysis: StudyAnalysis) -> str:
    proof = analysis.arms_from_proof
    return "runs of the proof" if proof else "runs of the search, as there is no proof yet"
