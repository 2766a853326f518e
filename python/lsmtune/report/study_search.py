"""A study's report, the search: noise and drift, history, importance, statistics, trials."""

from __future__ import annotations

from functools import partial

from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Outcome
from lsmtune.report import figures, sentences
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import (
    NOT_KNOWN,
    Beside,
    Block,
    Cell,
    Column,
    Facts,
    Heading,
    Paragraph,
    Section,
    Table,
    headed,
    plot_blocks,
)
from lsmtune.report.insight_figures import (
    anchor_figure,
    front_figure,
    importance_figure,
    slice_figure,
)
from lsmtune.report.tables import Front, FrontRow, ImportanceRow, NoiseRow, TrialRow

# --- Noise and drift


def noise_section(analysis: StudyAnalysis) -> Section:
    """Anchors over the time of the study, and how much runs scatter."""
    blocks: list[Block] = [Paragraph("The baseline has not been run.", "quiet")]
    if analysis.anchors:
        note = (
            "Anchors are runs of the baseline that nothing shared the machine with: before the "
            "search, and between its trials. Each trial is judged relative to the anchors of its "
            "own time."
        )
        blocks = [Paragraph(note, "note")]
    for number, series in enumerate(analysis.anchors):
        several = len(analysis.anchors) > 1
        blocks += [Heading(text.metric_label(series.objective))] if several else []
        label = "The anchors over the time of the study"
        plot = plot_blocks(f"anchors-{number}", label, anchor_figure(series))
        columns = (
            Column("run", key="role", number=False),
            Column("at", text.seconds, "at_s"),
            Column("after", partial(text.count, noun="trial"), "trials_before"),
            Column("value", partial(text.quantity, series.metric), "value"),
            Column("segment", lambda n: text.number(None if n is None else n + 1), "segment"),
        )
        line = f"{text.sentence(sentences.drift_line(series))}."
        table = Table.of(columns, series.points, "Anchors", fold="Figures" if plot else "")
        blocks += [Paragraph(line, "finding"), *plot, table]
    if not analysis.noise:
        why = "There was no calibration, so that it is not known how much runs scatter."
        return Section("noise", "Noise and drift", [*blocks, Paragraph(why, "quiet")])
    scatter = (
        "Standard deviations of the logarithm, with intervals at 95 %. Provable is the smallest "
        "difference that so many pairs show with a probability of 80 %."
    )
    blocks += [
        Heading("How much runs scatter"),
        Paragraph(scatter, "quiet"),
        Table.of(_NOISE, analysis.noise, "Noise"),
    ]
    return Section("noise", "Noise and drift", blocks)


def _autocorrelation(row: NoiseRow) -> str:
    return "" if row.autocorrelation is None else f"{row.autocorrelation:+.2f}"


_NOISE = (
    Column("from", sentences.noise_source, number=False),
    Column("of a", lambda of_pairs: "pair" if of_pairs else "run", "of_pairs", number=False),
    Column("noise", sentences.noise_figure),
    Column("autocorrelation", _autocorrelation),
    Column("provable", sentences.provable),
)


# --- The search


def history_section(analysis: StudyAnalysis) -> Section:
    """The value of each trial, and the best so far."""
    title, history, metric = "Optimisation history", analysis.history, analysis.metric
    if not history.trials:
        none = Paragraph("No trial has been run yet.", "quiet")
        return Section("history", title, [none], "History")
    note = text.count(len(history.trials), "trial")
    if history.best_trial is not None:
        note += f"; the best is trial {history.best_trial} with "
        note += text.quantity(metric, history.best_value)
        if metric == "gain":
            note += " the baseline"
        elif history.best_ratio is not None:
            of = text.quantity(metric, history.baseline_value)
            note += f", {text.ratio(history.best_ratio)} the baseline's {of}"
        note += f": {sentences.searched(analysis.verdict)}"
    label = "Value of each trial and the best so far"
    plot = plot_blocks("history", label, figures.history_figure(analysis))
    blocks = [Paragraph(f"{note}. The proof decides, not this plot.", "note"), *plot]
    return Section("history", title, blocks, "History")


def front_section(analysis: StudyAnalysis, front: Front) -> Section:
    """The trials that no other beats in every objective."""
    if not front.rows:
        none = "No trial has given a value of every objective within the constraints yet."
        return Section("front", "Front", [Paragraph(none, "quiet")])
    weights = ", ".join(
        f"{text.metric_label(name)} {text.percent(weight)}"
        for name, weight in zip(front.objectives, front.weights, strict=True)
    )
    note = (
        f"{text.count(len(front.rows), 'trial')} that no other beats in every objective, and "
        f"{text.count(len(front.others), 'other')}. The gain is the weighted geometric mean of the "
        f"ratios to the baseline, turned over where lower is better; the weights are {weights}. "
        "From the search; the proof decides."
    )

    def number(row: FrontRow) -> Cell:
        return Cell(f"{row.trial}{' (picked)' if row.is_picked else ''}", row.trial)

    columns = [Column("trial", number)]
    for at, (name, metric) in enumerate(zip(front.objectives, front.metrics, strict=True)):
        told, label = partial(text.quantity, metric), text.metric_label(name)
        columns.append(Column(label, told, partial(_of_objective, "values", at)))
        columns.append(Column("to baseline", text.ratio, partial(_of_objective, "ratios", at)))
    columns.append(Column("gain", text.ratio, "gain"))
    columns.append(Column("options", text.options_line, "options", number=False, style="mono clip"))
    marks = {number: "tuned" for number, row in enumerate(front.rows) if row.is_picked}
    blocks = [
        Paragraph(note, "note"),
        *plot_blocks("front", "The front of the first two objectives", front_figure(analysis)),
        Table.of(columns, front.rows, "Front", marks=marks, header=False, sortable=True),
    ]
    return Section("front", "Front", blocks)


def _of_objective(field: str, at: int, row: FrontRow) -> float | None:
    value: float | None = getattr(row, field)[at]
    return value


def importance_section(analysis: StudyAnalysis) -> Section:
    """How much each parameter mattered."""
    blocks: list[Block] = []
    for number, of_objective in enumerate(analysis.importances):
        blocks += [
            Heading(f"Parameter importance for {text.metric_label(of_objective.metric)}"),
            Paragraph(sentences.importance_note(of_objective), "note"),
        ]
        if of_objective.rows:
            figure, label = importance_figure(of_objective), "Parameter importance"
            plotted = f"importance-{number}", "Importance of each parameter", figure
            plot = plot_blocks(*plotted, small=True)
            fold = "Figures" if plot else ""
            table = Table.of(_IMPORTANCE, of_objective.rows, label, fold=fold, sortable=True)
            blocks += [*plot, table]
    if not blocks:
        blocks = [Paragraph("Not assessed: the report was asked for without it.", "quiet")]
    return Section("importance", "Parameter importance", blocks, "Importance")


def _importance_interval(row: ImportanceRow) -> Cell:
    low, high = text.share(row.importance_low), text.share(row.importance_high)
    return Cell(f"{low} to {high}", row.importance_high)


_IMPORTANCE = (
    Column("parameter", key="parameter", number=False),
    Column("importance", text.share, "importance"),
    Column("interval", _importance_interval),
    Column("rank", lambda row: Cell(sentences.rank(row.rank_low, row.rank_high), row.rank)),
    Column("same rank in", text.share, "rank_share"),
    Column("above chance", lambda above: "yes" if above else "no", "above_chance", number=False),
    Column("active in", partial(text.count, noun="trial"), "trials"),
    Column("values tried", key="values_tried"),
)


def slices_section(analysis: StudyAnalysis) -> Section:
    """The objective over each parameter."""
    note = (
        "The objective over each parameter, one mark per trial; the star is the tuned "
        "configuration, the dashed line the baseline. Special values and trials in which the "
        "parameter was inactive stand to the left; crosses at the bottom failed, hollow diamonds "
        "were pruned."
    )
    groups: list[list[Block]] = []
    for number, plotted in enumerate(analysis.slices):
        name = plotted.parameter.name
        figure = slice_figure(analysis, plotted)
        plot = plot_blocks(f"slice-{number}", f"Objective over {name}", figure, small=True)
        groups.append([Heading(name), *(plot or [Paragraph("No trial has a value.", "quiet")])])
    blocks: list[Block] = [Paragraph(note, "note"), Beside(groups, "slices")]
    return Section("slices", "Parameter slices", blocks, "Parameters", omit=("markdown",))


_TIME = (Column("time", text.seconds, "total_s"), Column("median", text.seconds, "median_s"))
_SHARE = Column("of all time", text.share, "share")
_TRIALS = Column("trials", key="trials")
_KINDS = (Column("outcome", text.outcome, "outcome", number=False), _TRIALS, *_TIME, _SHARE)
_RUNGS = (Column("rung", sentences.rung_name, number=False), _TRIALS, *_TIME)
_ROLES = (
    *(Column("runs for", text.outcome, "role", number=False), Column("runs", key="runs")),
    *(*_TIME, _SHARE),
)


def statistics_section(analysis: StudyAnalysis) -> Section:
    """How the trials ended, and where the time went."""
    counts = analysis.statistics
    blocks = [
        Facts(sentences.statistics_facts(counts)),
        *headed(Table.of(_KINDS, counts["kinds"], "How the trials ended")),
        *headed(Table.of(_RUNGS, counts["rungs"], "Where trials were pruned")),
        *headed(Table.of(_ROLES, counts["roles"], "Where the time went")),
    ]
    return Section("statistics", "Statistics", blocks)


def trials_section(analysis: StudyAnalysis) -> Section:
    """Every trial; the columns on repeats only where some were repeated."""
    rows, metric = analysis.history.trials, analysis.metric
    if not rows:
        return Section("trials", "Trials", [Paragraph("No trial has been run yet.", "quiet")])
    note = (
        "A trial's value is the mean of its runs, each seen relative to the anchors of its time; "
        "the spread is half of their range. Runs in brackets do not count, as the machine changed "
        f"meanwhile. The value of the best trial is {sentences.searched(analysis.verdict)}."
    )

    def as_measured(row: TrialRow) -> Cell:
        return Cell(sentences.runs_told(row, metric), len(row.runs))

    def told(row: TrialRow) -> Cell:
        return Cell(sentences.told_words(row, metric), row.told.sd if row.told else "")

    repeated = any(as_measured(row).text for row in rows)
    of_options = []
    for parameter in (plotted.parameter for plotted in analysis.slices):
        told_option = partial(text.option, unit=parameter.unit)
        value = partial(_option, parameter.name)
        of_options.append(Column(parameter.name, told_option, value, style="name mono"))
    columns = [
        Column("trial", key="trial"),
        Column("outcome", _outcome_cell, number=False),
        Column("value", partial(text.quantity, metric), "value"),
        Column("to baseline", text.ratio, "ratio_to_baseline"),
        Column("runs", key=lambda row: len(row.runs)),
        *([Column("spread", text.spread, "spread")] if repeated else []),
        Column("took", text.seconds, "elapsed_s"),
        *of_options,
        Column("sampler was told", told),
        *([Column("as measured", as_measured)] if repeated else []),
    ]
    marks = {number: "tuned" for number, row in enumerate(rows) if row.is_tuned}
    table = Table.of(columns, rows, "Trials", marks=marks, header=False, sortable=True)
    return Section("trials", "Trials", [Paragraph(note, "note"), table])


def _option(name: str, row: TrialRow) -> OptionValue | None:
    return row.options.get(name)


def _outcome_cell(row: TrialRow) -> Cell:
    """How a trial ended: where a pruned one was stopped, and what a whole one broke."""
    ended = f"{text.outcome(row.outcome.value)} {text.reached(row.censored)}".strip()
    ended += " (tuned)" if row.is_tuned else " (best)" if row.is_best else ""
    again = ["run again: the machine changed"] if row.run_again_after_change else []
    broken = [f"breaks {constraint}" for constraint in row.broken]
    bad = row.outcome not in (Outcome.OK, Outcome.PRUNED)
    return Cell(ended, tone="fail" if bad else "", below=(*again, *broken))


def failures_section(analysis: StudyAnalysis) -> Section:
    """How the runs ended, and what failed ones said."""
    counts = "; ".join(
        f"{text.outcome(row['role'])}: {row['count']} {text.outcome(row['outcome'])}"
        for row in analysis.outcomes
    )
    blocks: list[Block] = [Paragraph(f"{counts}." if counts else "No run yet.", "note")]
    columns = (
        Column(
            "outcome", lambda end: Cell(text.outcome(end), tone="fail"), "outcome", number=False
        ),
        Column("runs", key="count"),
        Column("what the run said", key="message", number=False, style="clip"),
        Column("trials", lambda t: ", ".join(map(str, t)) or NOT_KNOWN, "trials", number=False),
    )
    if analysis.failures:
        blocks.append(Table.of(columns, analysis.failures, "Failures", header=False))
    elif analysis.runs:
        blocks.append(Paragraph("Every run ended well.", "quiet"))
    return Section("failures", "Failures", blocks)
