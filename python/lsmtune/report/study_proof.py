"""A study's report, the proof: verdict, price, what to deploy, both configurations compared."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial

from lsmtune.model.config import option_text
from lsmtune.model.metrics import BY_NAME, PERCENTILES
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import Verdict
from lsmtune.report import figures
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.differences import option_cell
from lsmtune.report.document import (
    Answer,
    Beside,
    Block,
    Cell,
    Column,
    Copy,
    Facts,
    Heading,
    Paragraph,
    Section,
    Table,
    paragraphs,
    words,
)
from lsmtune.report.proof import TREE
from lsmtune.report.tables import Arm, Ended, History, ImportanceRow, PairRow, ProofFacts, Row
from lsmtune.report.verdict import price_answer, price_blocks, size_lines, verdict_answer

_RATIO = Column("ratio", text.ratio, "ratio")


# --- What to say first: the verdict, its price, and where it was proved


def headline(analysis: StudyAnalysis) -> Answer:
    """What to say first."""
    if analysis.verdict is not None:
        return verdict_answer(analysis.verdict)
    history = analysis.history
    trials, best = text.count(len(history.trials), "trial"), history.best_ratio
    detail = f"{trials} so far, and none {_none_best(analysis)}."
    if history.best_trial is not None:
        worth = f"{text.ratio(best)} the baseline"
        if best is None:
            worth = text.quantity(analysis.metric, history.best_value)
        detail = (
            f"After {trials} the best is trial {history.best_trial}, {worth} "
            "by the runs of the search: a promise, not a proof."
        )
    lead = "The proof has not been made yet. Run lsmtune tune on the study again to go on."
    return Answer("open", "Unfinished", "No verdict yet", lead, detail)


def _none_best(analysis: StudyAnalysis) -> str:
    return text.none_best(valued=analysis.statistics["complete"] > 0)


def verdict_section(analysis: StudyAnalysis, head: Answer) -> Section:
    """What was proved, how, and at which size."""
    details = [head.detail, *proof_lines(analysis.verdict, analysis.proof)]
    sizes = [] if analysis.verdict is None else size_lines(analysis.verdict)
    where = [Heading("Where it was proved")] if sizes else []
    blocks: list[Block] = [head, *paragraphs(details, "detail"), *where]
    blocks += paragraphs(sizes, "detail")
    return Section("verdict", head.label, blocks, "Verdict", head.tone, top=True)


_PAIR_METHODS: Mapping[str, str] = {
    PairMethod.WHOLE: "one whole run follows the other",
    PairMethod.SLICES: "both take turns in short slices, while the other one is frozen",
    PairMethod.DUET: "both run at the same time, each on its own half of the cores",
}


def proof_lines(verdict: Verdict | None, proof: ProofFacts | None) -> list[str]:
    """How the proof was made, why it stopped, what it would take, and what to mind."""
    if verdict is None or proof is None:
        return []
    lines = []
    if verdict.method in _PAIR_METHODS:
        method = _PAIR_METHODS[verdict.method]
        lines.append(f"{text.count(verdict.pairs, 'pair')} by {verdict.method}: {method}.")
    limit = f" ({text.deviation(proof.smallest_effect)})" if proof.smallest_effect else ""
    whys = {
        Ended.DECIDED: "as soon as the interval excluded no difference",
        Ended.EQUIVALENT: f"as soon as the interval lay within what is too small to matter{limit}",
        Ended.PAIRS: f"after all {text.count(proof.pairs_max, 'pair')} that were planned",
        Ended.OTHER: f"because {verdict.why}" if verdict.why else "before anything was clear",
    }
    if proof.ended is not None:
        lines.append(f"It stopped {whys[proof.ended]}.")
    if verdict.what_it_takes:
        lines.append(f"What it takes: {verdict.what_it_takes}.")
    return lines + [f"{text.sentence(note)}." for note in verdict.notes]


def price_section(verdict: Verdict, history: History) -> Section:
    """What the gain costs: every metric's ratio in one plot; guards and metrics one by one.

    And what lifting guards would buy, by the search.
    """
    head = price_answer(verdict)
    blocks: list[Block] = [head, *paragraphs(_lifted(history), "detail")]
    blocks += figures.forest_chart(verdict)
    if verdict.guards:
        line = "Intervals of guards are at 95 % each, those of other metrics as is said below."
        blocks.append(Paragraph(line, "quiet"))
    blocks += price_blocks(verdict)
    return Section("price", head.label, blocks, "Price", head.tone, top=True)


def _lifted(history: History) -> list[str]:
    """Which trial the guards kept from being the best; empty where they did not."""
    rows = [row for row in history.trials if row.trial == history.lifted_trial]
    return [
        f"Without guards, trial {row.trial} would be the best of the search: "
        f"{text.ratio(row.ratio_to_baseline)} the baseline, a promise and not a proof. It breaks "
        f"{', '.join(row.broken)}."
        for row in rows
    ]


# --- What to deploy


def deploy_section(analysis: StudyAnalysis, proven: bool) -> Section:
    """The options that differ from the baseline's, text to copy, and the files that hold them."""
    options, number = analysis.options, analysis.tuned_trial
    title = "Deploy" if proven or not options else "The candidate"
    label = "file to deploy" if proven else "file of the candidate"
    paths = [(label, str(path)) for path in analysis.result_files]
    files = [Facts(paths, frozenset({label}))] if paths else []
    if not options:
        why = f"No trial {_none_best(analysis)} yet, so there is nothing to deploy."
        return Section("deploy", title, [Paragraph(why, "quiet"), *files], top=True)
    of = "Options of the candidate" if number is None else f"Options of trial {number}"
    end = "." if proven else "; not proven to be better."
    note = f"{of} that differ from the baseline's{end}"
    differ = [row for row in options if row["differs"]]
    same = [row for row in options if not row["differs"]]
    if not differ:
        note = f"{of}: no option differs from the baseline's."
    shares = analysis.importances[0].rows if len(analysis.importances) == 1 else ()
    by_name = {row.parameter: row for row in shares}
    mattered = Column("importance", lambda name: _mattered(by_name.get(name)), "name")
    columns = (*_OPTIONS, mattered) if by_name else _OPTIONS
    blocks: list[Block] = [Paragraph(note, "note")]
    if differ:
        blocks.append(Table.of(columns, differ, "Options that differ", style="options"))
        lines = [
            f"{row['name']}={option_text(row['tuned'])}"
            for row in differ
            if row["tuned"] is not None
        ]
        blocks.append(Copy("\n".join(lines), "the options"))
    if same:
        fold = f"{text.count(len(same), 'option')} as in the baseline"
        blocks.append(Table.of(_OPTIONS, same, "The other options", fold=fold, style="options"))
    command = f"lsmtune export {shlex.quote(str(analysis.path))}"
    export = Paragraph("In the form of another program:", "quiet", command)
    return Section("deploy", title, [*blocks, *files, export], top=True)


def _mattered(row: ImportanceRow | None) -> Cell:
    if row is None:
        return Cell("not assessed", tone="sys")
    if not row.above_chance:
        return Cell("not told from chance", tone="sys")
    return Cell(text.share(row.importance), row.importance)


def _option_cell(side: str, row: Row) -> Cell:
    is_set = row[side] is not None
    return option_cell(row[side if is_set else "engine_default"], row["unit"], is_set=is_set)


_OPTIONS = (
    Column("option", key="name", number=False),
    Column("baseline", partial(_option_cell, "baseline"), number=False),
    Column("tuned", partial(_option_cell, "tuned"), number=False, style="to"),
)


# --- Tuned against baseline


def compared_section(analysis: StudyAnalysis) -> Section:
    """Both configurations beside each other: over time, latencies, stalls, costs, pair by pair."""
    blocks = [
        *_series_blocks(analysis),
        *_latency_blocks(analysis),
        *_performance_blocks(analysis),
        *_workload_blocks(analysis),
        *_pair_blocks(analysis),
    ]
    return Section("compared", "Tuned against baseline", blocks, "Compared")


def _series_blocks(analysis: StudyAnalysis) -> list[Block]:
    """Throughput over time, under each workload."""
    source = Paragraph(f"{text.sentence(_source(analysis))}.", "quiet")
    blocks: list[Block] = []
    for workload in dict.fromkeys(row["workload"] for row in analysis.series):
        under = f" under {workload}" if workload else ""
        for chart in figures.series_chart(analysis, workload):
            blocks += [Heading(f"Throughput over time{under}"), source, chart]
    return blocks


def _workload_blocks(analysis: StudyAnalysis) -> list[Block]:
    """Workload by workload."""
    by_workload = (
        Column("workload", key="workload", number=False),
        Column("weight", text.share, "share"),
        Column("objective", text.metric_label, "objective", number=False),
        *_BOTH,
    )
    table = Table.of(by_workload, analysis.by_workload, "By workload")
    return [Heading(table.label), table] if table.rows else []


def _pair_blocks(analysis: StudyAnalysis) -> list[Block]:
    metric = analysis.metric
    if not analysis.pairs:
        end = ": the proof comes after the search." if analysis.verdict is None else "."
        return [Paragraph(f"No pair has been run{end}", "quiet")]

    def side(arm: Arm, row: PairRow) -> Cell:
        value = row.baseline_value if arm is Arm.BASELINE else row.tuned_value
        outcome = row.baseline_outcome if arm is Arm.BASELINE else row.tuned_outcome
        if value is None:
            return Cell(text.outcome(outcome.value), tone="fail")
        return Cell(text.quantity(metric, value), value)

    note = pairs_note(analysis.pairs, len(analysis.workloads))
    shown = f"{text.metric_label(metric)}: {text.direction_words(analysis.direction)}."
    plot = figures.pairs_chart(analysis)
    columns = (*words("pair"), *(Column(arm, partial(side, arm)) for arm in Arm), _RATIO)
    rows = [
        (f"{number}{'' if row.counts else ' (does not count)'}", row, row, row.ratio)
        for number, row in enumerate(analysis.pairs, 1)
    ]
    table = Table(columns, rows, "Pairs", fold="Figures" if plot else "")
    return [Heading("Pair by pair"), Paragraph(f"{note} Shown is {shown}", "quiet"), *plot, table]


def pairs_note(pairs: Sequence[PairRow], workloads: int) -> str:
    """How each pair was run."""
    alone = "two fresh runs" if workloads == 1 else "a fresh run per workload and configuration,"
    each = "one per configuration, " if workloads == 1 else ""
    methods = {row.method for row in pairs if row.counts}
    how = _PAIR_METHODS.get(methods.pop(), "") if len(methods) == 1 else ""
    how = f": {how}" if how else ""
    left = sum(not row.counts for row in pairs)
    do = "does" if left == 1 else "do"
    out = f" {text.count(left, 'pair')} by another method {do} not count." if left else ""
    return f"Each pair is {alone} on the same new seed, {each}the first drawn by lot{how}.{out}"


def _arm_quantity(arm: Arm, row: Row) -> str:
    """The figure of an arm in a row that names its metric."""
    return text.quantity(row["metric"], row[arm])


_BOTH = (
    Column("baseline", partial(_arm_quantity, Arm.BASELINE)),
    Column("tuned", partial(_arm_quantity, Arm.TUNED)),
    _RATIO,
)


# --- Burst and sustained, latency


def _performance_blocks(analysis: StudyAnalysis) -> list[Block]:
    """Burst, sustained and drain of both arms, stalls, amplifications, and the trees they left."""
    if not analysis.performance:
        return [Paragraph("No run has finished a measure phase yet.", "quiet")]
    note = (
        f"Medians of the {_source(analysis)}. The burst ends with the last call; sustained charges "
        "the drain, in which what was left is flushed and compacted."
    )
    blocks: list[Block] = [Heading("Burst, sustained and what they cost"), Paragraph(note, "quiet")]
    columns = (Column("figure", _performance_label, "metric", number=False), *_BOTH)
    by_phase: dict[tuple[str, str], list[Row]] = {}
    for row in analysis.performance:
        by_phase.setdefault((row["workload"], row["phase"]), []).append(row)
    for (workload, phase), rows in by_phase.items():
        if len(by_phase) > 1:
            blocks.append(Heading(f"{phase}{f' under {workload}' if workload else ''}"))
        blocks.append(Table.of(columns, rows, f"Burst and sustained of {phase}"))
        for arm in Arm:
            of = {"workload": workload, "phase": phase, "arm": arm}
            levels = [row for row in analysis.levels if of.items() <= row.items()]
            fold = f"The tree at its end, and what was written into each level: {arm.value}"
            label = f"Levels of {phase}, {arm.value}"
            blocks += [Table.of(TREE, levels, label, fold=fold)] if levels else []
    return blocks


def _performance_label(metric: str) -> str:
    """A figure's name where all of them stand side by side."""
    known = BY_NAME.get(metric)
    return (known.short if known else "") or text.metric_label(metric)


def _latency_blocks(analysis: StudyAnalysis) -> list[Block]:
    """Percentiles of both arms, by operation type."""
    operations = sorted({curve.operation for curve in analysis.latencies})
    if not operations:
        return [Paragraph("No run has stored a latency histogram yet.", "quiet")]
    note = f"Whole histograms of the {_source(analysis)}, merged per configuration."
    groups: list[list[Block]] = []
    columns = [Column("", key="arm", number=False), Column("operations", text.number, "count")]
    for metric in (*PERCENTILES, "latency_us_max"):
        label = text.metric_label(metric).removesuffix(" latency")
        columns.append(Column(label, text.duration_us, metric))
    for operation in operations:
        curves = [curve for curve in analysis.latencies if curve.operation == operation]
        label = f"Latency of {operation}"
        plot = figures.latency_chart(analysis, operation)
        table = Table.of(columns, curves, label, fold="Figures" if plot else "")
        groups.append([Heading(label), *plot, table])
    return [Heading("Latency"), Paragraph(note, "quiet"), Beside(groups, "pair")]


def _source(analysis: StudyAnalysis) -> str:
    proof = analysis.arms_from_proof
    return "runs of the proof" if proof else "runs of the search, as there is no proof yet"
