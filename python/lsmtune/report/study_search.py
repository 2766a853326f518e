"""A study's report, the search: noise and drift, history, importance, statistics, trials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
    Value,
    headed,
    numbers,
    plot_blocks,
    words,
)
from lsmtune.report.insight_figures import (
    anchor_figure,
    front_figure,
    importance_figure,
    slice_figure,
)
from lsmtune.report.tables import (
    Front,
    Importance,
    TrialRow,
)
from lsmtune.report.trust_tables import AnchorSeries

# --- What every section uses


def quantity_column(label: str, metric: str) -> Column:
    """A column of values of `metric`, with their unit."""
    return Column(label, partial(text.quantity, metric))


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
            blocks += _anchors(number, series)
    if not analysis.noise:
        why = "There was no calibration, so that it is not known how much runs scatter."
        return Section("noise", "Noise and drift", [*blocks, Paragraph(why, "quiet")])
    scatter = (
        "Standard deviations of the logarithm, with intervals at 95 %. Provable is the smallest "
        "difference that so many pairs show with a probability of 80 %."
    )
    rows = [
        (
            sentences.noise_source(row),
            "pair" if row.of_pairs else "run",
            sentences.noise_figure(row),
            "" if row.autocorrelation is None else f"{row.autocorrelation:+.2f}",
            sentences.provable(row),
        )
        for row in analysis.noise
    ]
    columns = (*words("from", "of a"), *numbers("noise", "autocorrelation", "provable"))
    blocks += [
        Heading("How much runs scatter"),
        Paragraph(scatter, "quiet"),
        Table(columns, rows, "Noise"),
    ]
    return Section("noise", "Noise and drift", blocks)


def _anchors(number: int, series: AnchorSeries) -> list[Block]:
    line = f"{text.sentence(sentences.drift_line(series))}."
    plot = plot_blocks(
        f"anchors-{number}", "The anchors over the time of the study", anchor_figure(series)
    )
    rows = [
        (
            point.role,
            point.at_s,
            text.count(point.trials_before, "trial"),
            point.value,
            None if point.segment is None else point.segment + 1,
        )
        for point in series.points
    ]
    columns = (
        *words("run"),
        Column("at", text.seconds),
        *numbers("after"),
        quantity_column("value", series.metric),
        Column("segment", text.number),
    )
    table = Table(columns, rows, "Anchors", fold="Figures" if plot else "")
    return [Paragraph(line, "finding"), *plot, table]


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
    columns = [Column("trial")]
    for name, metric in zip(front.objectives, front.metrics, strict=True):
        columns += [
            quantity_column(text.metric_label(name), metric),
            Column("to baseline", text.ratio),
        ]
    columns.append(Column("gain", text.ratio))
    columns.append(Column("options", text.options_line, number=False, style="mono clip"))
    rows: list[list[Value]] = []
    for row in front.rows:
        picked = " (picked)" if row.is_picked else ""
        values: list[Value] = [Cell(f"{row.trial}{picked}", row.trial)]
        for value, ratio in zip(row.values, row.ratios, strict=True):
            values += [value, ratio]
        rows.append([*values, row.gain, Cell(text.options_line(dict(row.options)))])
    marks = {number: "tuned" for number, row in enumerate(front.rows) if row.is_picked}
    return Section(
        "front",
        "Front",
        [
            Paragraph(note, "note"),
            *plot_blocks("front", "The front of the first two objectives", front_figure(analysis)),
            Table(columns, rows, "Front", marks, header=False, sortable=True),
        ],
    )


def importance_section(analysis: StudyAnalysis) -> Section:
    """How much each parameter mattered."""
    blocks: list[Block] = []
    for number, found in enumerate(analysis.importances):
        label = text.metric_label(found.metric)
        blocks += [
            Heading(f"Parameter importance for {label}"),
            Paragraph(sentences.importance_note(found), "note"),
            *(_importance_blocks(number, found) if found.rows else []),
        ]
    if not blocks:
        blocks = [Paragraph("Not assessed: the report was asked for without it.", "quiet")]
    return Section("importance", "Parameter importance", blocks, "Importance")


def _importance_blocks(number: int, found: Importance) -> list[Block]:
    figure = importance_figure(found)
    plot = plot_blocks(f"importance-{number}", "Importance of each parameter", figure, small=True)
    rows = [
        (
            row.parameter,
            row.importance,
            Cell(
                f"{text.share(row.importance_low)} to {text.share(row.importance_high)}",
                row.importance_high,
            ),
            Cell(sentences.rank(row.rank_low, row.rank_high), row.rank),
            row.rank_share,
            "yes" if row.above_chance else "no",
            Cell(text.count(row.trials, "trial"), row.trials),
            row.values_tried,
        )
        for row in found.rows
    ]
    columns = (
        *words("parameter"),
        Column("importance", text.share),
        *numbers("interval", "rank"),
        Column("same rank in", text.share),
        *words("above chance"),
        *numbers("active in", "values tried"),
    )
    fold = "Figures" if plot else ""
    return [*plot, Table(columns, rows, "Parameter importance", fold=fold, sortable=True)]


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


def statistics_section(analysis: StudyAnalysis) -> Section:
    """How the trials ended, and where the time went."""
    found = analysis.statistics
    time = (Column("time", text.seconds), Column("median", text.seconds))
    share = Column("of all time", text.share)
    kinds = [
        (text.outcome(row.outcome.value), row.trials, row.total_s, row.median_s, row.share)
        for row in found.kinds
    ]
    rungs = [
        (sentences.rung_name(row), row.trials, row.total_s, row.median_s) for row in found.rungs
    ]
    roles = [
        (text.outcome(row.role), row.runs, row.total_s, row.median_s, row.share)
        for row in found.roles
    ]
    ended = (*words("outcome"), *numbers("trials"), *time, share)
    pruned = (*words("rung"), *numbers("trials"), *time)
    ran = (*words("runs for"), *numbers("runs"), *time, share)
    return Section(
        "statistics",
        "Statistics",
        [
            Facts(sentences.statistics_facts(found)),
            *headed("How the trials ended", ended, kinds),
            *headed("Where trials were pruned", pruned, rungs),
            *headed("Where the time went", ran, roles),
        ],
    )


def trials_section(analysis: StudyAnalysis) -> Section:
    """Every trial."""
    rows = analysis.history.trials
    if not rows:
        return Section("trials", "Trials", [Paragraph("No trial has been run yet.", "quiet")])
    note = (
        "A trial's value is the mean of its runs, each seen relative to the anchors of its time; "
        "the spread is half of their range. Runs in brackets do not count, as the machine changed "
        f"meanwhile. The value of the best trial is {sentences.searched(analysis.verdict)}."
    )
    columns: list[tuple[Column, Callable[[TrialRow], Value]]] = _trial_columns(analysis)
    table = Table(
        [column for column, _ in columns],
        [[value(row) for _, value in columns] for row in rows],
        "Trials",
        {number: "tuned" for number, row in enumerate(rows) if row.is_tuned},
        header=False,
        sortable=True,
    )
    return Section("trials", "Trials", [Paragraph(note, "note"), table])


def _trial_columns(
    analysis: StudyAnalysis,
) -> list[tuple[Column, Callable[[TrialRow], Value]]]:
    """Each column with what it shows of a trial; those on repeats only where some were repeated."""
    metric = analysis.metric
    repeated = any(sentences.runs_told(row, metric) for row in analysis.history.trials)
    parameters: list[tuple[Column, Callable[[TrialRow], Value]]] = [
        (
            Column(parameter.name, partial(text.option, unit=parameter.unit), style="name mono"),
            partial(_option_of, parameter.name),
        )
        for parameter in (plotted.parameter for plotted in analysis.slices)
    ]
    spread = (Column("spread", text.spread), lambda row: row.spread)
    measured = (
        Column("as measured"),
        lambda row: Cell(sentences.runs_told(row, metric), len(row.runs)),
    )
    return [
        (Column("trial"), lambda row: row.trial),
        (Column("outcome", number=False), _outcome_cell),
        (quantity_column("value", metric), lambda row: row.value),
        (Column("to baseline", text.ratio), lambda row: row.ratio_to_baseline),
        (Column("runs"), lambda row: len(row.runs)),
        *([spread] if repeated else []),
        (Column("took", text.seconds), lambda row: row.elapsed_s),
        *parameters,
        (
            Column("sampler was told"),
            lambda row: Cell(sentences.told_words(row, metric), row.told.sd if row.told else ""),
        ),
        *([measured] if repeated else []),
    ]


def _option_of(name: str, row: TrialRow) -> Value:
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
        f"{text.outcome(row.role)}: {row.count} {text.outcome(row.outcome.value)}"
        for row in analysis.outcomes
    )
    blocks: list[Block] = [Paragraph(f"{counts}." if counts else "No run yet.", "note")]
    rows = [
        (
            Cell(text.outcome(row.outcome.value), tone="fail"),
            row.count,
            row.message,
            ", ".join(map(str, row.trials)) or NOT_KNOWN,
        )
        for row in analysis.failures
    ]
    message = Column("what the run said", number=False, style="clip")
    columns = (*words("outcome"), *numbers("runs"), message, *words("trials"))
    if rows:
        blocks.append(Table(columns, rows, "Failures", header=False))
    elif analysis.runs:
        blocks.append(Paragraph("Every run ended well.", "quiet"))
    return Section("failures", "Failures", blocks)
