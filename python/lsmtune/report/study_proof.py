"""A study's report, the proof: verdict, what to deploy, pairs, burst and sustained, latency."""

from __future__ import annotations

import math
from functools import partial
from itertools import groupby

from lsmtune.model.metrics import PERCENTILES
from lsmtune.model.verdict import GuardResult, Verdict
from lsmtune.model.workload import Durability
from lsmtune.proof.crash_test import CrashOutcome
from lsmtune.proof.power_loss import power_sentences
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
    headed,
    numbers,
    plot_blocks,
    words,
)
from lsmtune.report.tables import Arm, LatencyCurve, PairRow, Row
from lsmtune.units import format_bytes
from lsmtune.workloads.describe import mixed_phases

_DURABILITY = {
    Durability.SYNC: "synced writes",
    Durability.WAL: "write-ahead log",
    Durability.NONE: "no write-ahead log",
}
_RATIO = Column("ratio", text.ratio, "ratio")
_ARMS = ("baseline", "candidate")


# --- The verdict, and what to deploy


def verdict_section(analysis: StudyAnalysis, head: sentences.Headline) -> Section:
    """What was proved, and how; figures of both arms: the objective, then latencies."""
    metric, medians = analysis.metric, analysis.medians
    details = [head.detail, *sentences.proof_lines(analysis.verdict, analysis.proof)]
    blocks: list[Block] = [
        Answer(head.label, head.figure, head.lead, interval_bar(analysis.verdict)),
        *(Paragraph(line, "detail") for line in details),
    ]
    crash, power = analysis.crash_test, analysis.power_test
    tests = [(crash.outcome, sentences.crash_words(crash))] if crash is not None else []
    if power is not None:
        told = " ".join(text.sentence(each) for each in power_sentences(power))
        tests.append((power.outcome, told))
    for outcome, words_of in tests:
        style = "detail fail" if outcome is CrashOutcome.FAILED else "detail"
        blocks.append(Paragraph(words_of, style))
    blocks += [*_price_blocks(analysis.verdict), *_size_blocks(analysis.verdict)]
    rows = []
    if len(medians) == len(Arm):
        both = (text.quantity(metric, medians[arm]) for arm in Arm)
        rows.append((text.metric_label(metric), *both))
    for operation, curves in _latency_rows(analysis):
        if analysis.arms_from_proof and len(curves) == len(Arm):
            for name in ("latency_us_p50", "latency_us_p99"):
                both = (text.quantity(name, getattr(curves[arm], name)) for arm in Arm)
                rows.append((f"{operation} latency, {_statistic(name)}", *both))
    if rows:
        columns = (*words(""), *numbers("baseline", "tuned"))
        blocks.append(Table(columns, rows, "Both configurations", style="compared"))
    return Section("verdict", head.label, blocks, "Verdict", head.tone, top=True)


def _price_blocks(verdict: Verdict | None) -> list[Block]:
    """What the gain costs, guard by guard."""
    if verdict is None or not verdict.guards:
        return []

    def ended(guard: GuardResult) -> Cell:
        if guard.held is None:
            return Cell("not observed", tone="sys")
        broken = f"broken in {text.count(guard.broken, 'pair')} of {guard.pairs}"
        return Cell("held") if guard.held else Cell(broken, tone="fail")

    columns = (
        Column("guard", key="guard", number=False),
        *(_RATIO, Column("interval", text.interval)),
        Column("the candidate", ended, number=False),
    )
    return headed(Table.of(columns, verdict.guards, "The price"))


def _size_blocks(verdict: Verdict | None) -> list[Block]:
    """What the pairs ran, workload by workload."""
    if verdict is None or not verdict.proved_at:
        return []
    columns = (
        Column("workload", key="workload", number=False),
        Column("records", text.number, "records"),
        Column("of the target", text.share, "share_of_target"),
        Column("operations", text.number, "operations"),
        *(Column(f"flushes, {arm}", text.number, f"{arm}_flushes") for arm in _ARMS),
        *(Column(f"compactions, {arm}", text.number, f"{arm}_compactions") for arm in _ARMS),
    )
    return headed(Table.of(columns, verdict.proved_at, "Proved at"))


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
    ends = text.interval(verdict)
    label = f"Ratio to the baseline {text.ratio(verdict.ratio)}, interval {ends}"
    return IntervalBar(one, low, high, ratio, label, ends)


def deploy_section(analysis: StudyAnalysis, proven: bool) -> Section:
    """The options beside the baseline's, and the files that hold them."""
    options, number = analysis.options, analysis.tuned_trial
    title = "The candidate" if options and not proven else "Deploy"
    files: list[Block] = []
    if analysis.result_files:
        files = [Files([str(path) for path in analysis.result_files], "Files to deploy")]
    if not options:
        why = "No trial has given a value yet, so there is nothing to deploy."
        return Section("deploy", title, [Paragraph(why, "quiet"), *files], top=True)
    of = "Options of the candidate" if number is None else f"Options of trial {number}"
    end = "." if proven else "; not proven to be better."
    blocks: list[Block] = [Paragraph(f"{of}, beside the baseline's{end}", "note")]
    fixed = sum(not row["tuned_by_study"] for row in options)
    for in_space, fold in ((True, ""), (False, f"{text.count(fixed, 'option')} outside the space")):
        rows = [row for row in options if row["tuned_by_study"] is in_space]
        same = {n: "same" for n, row in enumerate(rows) if row["baseline"] == row["tuned"]}
        more = {"marks": same, "fold": fold, "style": "options"}
        if rows or in_space:
            blocks.append(Table.of(_OPTIONS, rows, "Tuned options", **more))
    export = Paragraph("Write it as a file:", "quiet", f"lsmtune export {analysis.path}")
    return Section("deploy", title, [*blocks, *(files or [export])], "Deploy", top=True)


def _option_cell(side: str, row: Row) -> Cell:
    value, default = row[side], row["engine_default"] if side == "baseline" else None
    if value is not None:
        return Cell(text.option_told(value, row["unit"]))
    known = "" if default is None else f" {text.option_told(default, row['unit'])}"
    return Cell(f"default{known}", tone="sys")


_OPTIONS = (
    Column("option", key="name", number=False),
    Column("baseline", partial(_option_cell, "baseline"), number=False),
    Column("tuned", partial(_option_cell, "tuned"), number=False, style="to"),
)


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
        sizes = f"{format_bytes(workload.key_bytes)} and {format_bytes(workload.value_bytes)}"
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
    verdict, blocks = analysis.verdict, _pair_blocks(analysis)
    both = [Column(arm, partial(_arm_quantity, arm)) for arm in Arm]
    by_workload = (
        *(Column("workload", key="workload", number=False), Column("weight", text.share, "share")),
        Column("objective", text.metric_label, "objective", number=False),
        *(*both, _RATIO),
    )
    blocks += headed(Table.of(by_workload, analysis.by_workload, "By workload"))
    if verdict is not None and verdict.others:
        better = {"maximize": "higher", "minimize": "lower"}
        columns = (
            Column("metric", text.metric_label, "metric", number=False),
            Column("better is", lambda way: better.get(way, ""), "direction", number=False),
            *(_RATIO, Column("interval", text.interval)),
        )
        heading, *table = headed(Table.of(columns, verdict.others, "Each metric by itself"))
        note = Paragraph(sentences.correction_line(verdict, analysis.proof), "quiet")
        blocks += [heading, note, *table]
    label = "Throughput over time of both configurations"
    plot = plot_blocks("series", label, figures.series_figure(analysis))
    if plot:
        note = Paragraph(f"One line per run, from the {_source(analysis)}.", "quiet")
        blocks += [Heading("Throughput over time"), note, *plot]
    return Section("pairs", "Tuned against default", blocks)


def _pair_blocks(analysis: StudyAnalysis) -> list[Block]:
    metric = analysis.metric
    if not analysis.pairs:
        end = ": the proof comes after the search." if analysis.verdict is None else "."
        return [Paragraph(f"No pair has been run{end}", "quiet")]

    def side(arm: Arm, row: PairRow) -> Cell:
        value = row.baseline_value if arm is Arm.BASELINE else row.tuned_value
        outcome = row.baseline_outcome if arm is Arm.BASELINE else row.tuned_outcome
        if value is None:
            return Cell(text.outcome(outcome.value) if outcome else "not run", tone="fail")
        return Cell(text.quantity(metric, value), value)

    note = sentences.pairs_note(analysis.pairs, len(analysis.workloads))
    shown = f"{text.metric_label(metric)}: {sentences.direction_words(analysis.direction)}."
    plot = plot_blocks("pairs", "Both configurations in each pair", figures.pairs_figure(analysis))
    columns = (*words("pair"), *(Column(arm, partial(side, arm)) for arm in Arm), _RATIO)
    rows = [
        (f"{number}{'' if row.counts else ' (does not count)'}", row, row, row.ratio)
        for number, row in enumerate(analysis.pairs, 1)
    ]
    table = Table(columns, rows, "Pairs", fold="Figures" if plot else "")
    return [Paragraph(f"{note} Shown is {shown}", "note"), *plot, table]


def _arm_quantity(arm: Arm, row: Row) -> str:
    """The figure of an arm in a row that names its metric."""
    return text.quantity(row["metric"], row[arm])


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
    columns = (
        Column("figure", sentences.performance_label, "metric", number=False),
        *(Column(arm, partial(_arm_quantity, arm)) for arm in Arm),
        _RATIO,
    )
    by_phase = groupby(analysis.performance, lambda row: (row["workload"], row["phase"]))
    for (workload, phase), rows in by_phase:
        table = Table.of(columns, list(rows), f"Burst and sustained of {phase}")
        blocks += [Heading(f"{phase}{f' under {workload}' if workload else ''}"), table]
        for arm in Arm:
            of = {"workload": workload, "phase": phase, "arm": arm}
            levels = [row for row in analysis.levels if of.items() <= row.items()]
            fold = f"The tree at its end, and what was written into each level: {arm.value}"
            label = f"Levels of {phase}, {arm.value}"
            blocks += [Table.of(_LEVELS, levels, label, fold=fold)] if levels else []
    return Section("sustained", title, blocks)


_size = partial(text.quantity, "database_bytes")
_LEVELS = (
    Column("level", key="level"),
    Column("files", text.number, "files"),
    Column("size", _size, "bytes"),
    Column("flushes", lambda row: text.number(row["flushes"]) if row["level"] == 0 else ""),
    Column("compactions", text.number, "compactions"),
    Column("written by them", _size, "compaction_write_bytes"),
)


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
            Column(operation, key="arm", number=False),
            Column("operations", text.number, "count"),
            *(Column(_statistic(metric), text.duration_us, metric) for metric in shown),
        )
        blocks += [Heading(operation)] if len(all_rows) > 1 else []
        figure = figures.latency_figure(analysis, operation)
        blocks += plot_blocks(f"latency-{number}", f"Latency percentiles of {operation}", figure)
        blocks.append(Table.of(columns, list(curves.values()), f"Latency of {operation}"))
    return Section("latency", title, blocks, "Latency")


def _source(analysis: StudyAnalysis) -> str:
    proof = analysis.arms_from_proof
    return "runs of the proof" if proof else "runs of the search, as there is no proof yet"
