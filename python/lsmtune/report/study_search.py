"""A study's report, how the candidate was found: history, what mattered, trials."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import Verdict
from lsmtune.report import figures
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import (
    Beside,
    Block,
    Cell,
    Column,
    Facts,
    Heading,
    Paragraph,
    Section,
    Table,
)
from lsmtune.report.tables import (
    GAIN,
    Censored,
    Front,
    FrontRow,
    Importance,
    ImportanceRow,
    Row,
    TrialRow,
)


def found_section(analysis: StudyAnalysis) -> Section:
    """The search: history, front, what mattered, where the time went."""
    blocks = _history_blocks(analysis)
    if analysis.history.trials:
        blocks += [] if analysis.front is None else _front_blocks(analysis.front)
        blocks += _importance_blocks(analysis)
        blocks += _slice_blocks(analysis)
        blocks += _statistics_blocks(analysis)
    return Section("found", "How it was found", blocks, "Search")


def _history_blocks(analysis: StudyAnalysis) -> list[Block]:
    """The ratio of each trial, and the best so far."""
    history, metric = analysis.history, analysis.metric
    if not history.trials:
        return [Paragraph("No trial has been run yet.", "quiet")]
    note = text.count(len(history.trials), "trial")
    if history.best_trial is not None:
        note += f"; the best is trial {history.best_trial} with "
        note += text.quantity(metric, history.best_value)
        if metric == GAIN:
            note += " the baseline"
        elif history.best_ratio is not None:
            of = text.quantity(metric, history.baseline_value)
            note += f", {text.ratio(history.best_ratio)} the baseline's {of}"
        note += f": {_searched(analysis.verdict)}"
    line = Paragraph(f"{note}. The proof decides, not this plot.", "note")
    return [line, *figures.history_chart(analysis)]


def _searched(verdict: Verdict | None) -> str:
    """What the best value of a search is: not a proof."""
    end = "only a proof tells the gain" if verdict is None else "the gain is in the verdict"
    return f"from the search; {end}"


def _front_blocks(front: Front) -> list[Block]:
    """The trials that no other beats in every objective."""
    if not front.rows:
        none = "No trial has given a value of every objective within the constraints yet."
        return [Heading("Front"), Paragraph(none, "quiet")]
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
        label, quantity = text.metric_label(name), partial(text.quantity, metric)
        columns.append(Column(label, quantity, ("values", at)))
        columns.append(Column("to baseline", text.ratio, ("ratios", at)))
    columns.append(Column("gain", text.ratio, "gain"))
    columns.append(Column("options", text.options_line, "options", number=False, style="mono clip"))
    marks = {number: "tuned" for number, row in enumerate(front.rows) if row.is_picked}
    return [
        Heading("Front"),
        Paragraph(note, "quiet"),
        *figures.front_chart(front),
        Table.of(columns, front.rows, "Front", marks=marks, header=False, sortable=True),
    ]


def _importance_blocks(analysis: StudyAnalysis) -> list[Block]:
    """How much each parameter mattered."""
    blocks: list[Block] = []
    for of_objective in analysis.importances:
        blocks += [
            Heading(f"Parameter importance for {text.metric_label(of_objective.metric)}"),
            Paragraph(_importance_note(of_objective), "quiet"),
        ]
        if of_objective.rows:
            plot = figures.importance_chart(of_objective)
            label, fold = "Parameter importance", "Figures" if plot else ""
            table = Table.of(_IMPORTANCE, of_objective.rows, label, fold=fold, sortable=True)
            blocks += [*plot, table]
    none = Paragraph("Importance was not assessed: the report was asked for without it.", "quiet")
    return blocks or [none]


_METHODS = {
    "ped-anova": "PED-ANOVA: how much each parameter tells the best trials from all trials",
    "fanova": "fANOVA: which share of the variance each parameter explains by itself",
}


def _importance_note(table: Importance) -> str:
    """What the table of importance says, and what it does not."""
    head = _METHODS[table.method]
    if table.why:
        needs = table.why if table.why.startswith("needs") else f"cannot be had, as {table.why}"
        return f"{head}. No figures: it {needs}."
    counted = text.count(table.trials, "trial")
    if table.trials_without_value:
        counted += f" and {table.trials_without_value:,} without a value, as worse than those"
    return (
        f"{head}, over {counted}. The interval holds the middle {text.percent(table.interval)} of "
        f"{table.resamples} resamples of the trials. A variable of random numbers came to "
        f"{text.share(table.chance)}: what is not above that in nearly every resample is not "
        "told from chance."
    )


def _importance_interval(row: ImportanceRow) -> Cell:
    low, high = text.share(row.importance_low), text.share(row.importance_high)
    return Cell(f"{low} to {high}", row.importance_high)


_IMPORTANCE = (
    Column("parameter", key="parameter", number=False),
    Column("importance", text.share, "importance"),
    Column("interval", _importance_interval),
    Column("rank", lambda row: Cell(text.rank(row.rank_low, row.rank_high), row.rank)),
    Column("same rank in", text.share, "rank_share"),
    Column("above chance", lambda above: "yes" if above else "no", "above_chance", number=False),
    Column("active in", partial(text.count, noun="trial"), "trials"),
    Column("values tried", key="values_tried"),
)


def _slice_blocks(analysis: StudyAnalysis) -> list[Block]:
    """All options at once, and the objective over each parameter."""
    blocks: list[Block] = []
    for chart in figures.parallel_chart(analysis):
        blocks = [Heading("All options at once"), Paragraph(f"{chart.label}.", "quiet"), chart]
    note = (
        "The objective over each parameter, one mark per trial; the star is the candidate, the "
        "dashed line the baseline. Special values and trials in which the parameter was inactive "
        "stand to the left; those at the bottom have no value: red ones failed, grey ones were "
        "pruned, or ended well with an objective of 0, of which several make no number."
    )
    groups: list[list[Block]] = []
    for parameter in analysis.parameters:
        plot = list[Block](figures.slice_chart(analysis, parameter))
        none = Paragraph("No trial has a value.", "quiet")
        groups.append([Heading(parameter.name), *(plot or [none])])
    return [
        *blocks,
        Heading("One option at a time"),
        Paragraph(note, "quiet"),
        Beside(groups, "slices"),
    ]


def rung_name(row: Row) -> str:
    """`rung 1, after 2s`, `rung 0, at 5,000 keys`, `step 3`."""
    rung, at_s, at_keys = row["rung"], row["at_s"], row["at_keys"]
    if at_s is None and at_keys is None:
        return f"step {rung:,}"
    return f"rung {rung}, {text.reached(Censored(rung, at_s, at_keys))}"


_TIME = (Column("time", text.seconds, "total_s"), Column("median", text.seconds, "median_s"))
_SHARE = Column("of all time", text.share, "share")
_TRIALS = Column("trials", key="trials")
_KINDS = (Column("outcome", text.outcome, "outcome", number=False), _TRIALS, *_TIME, _SHARE)
_RUNGS = (Column("rung", rung_name, number=False), _TRIALS, *_TIME)
_RUNS_FOR = Column("runs for", text.outcome, "role", number=False)
_ROLES = (_RUNS_FOR, Column("runs", key="runs"), *_TIME, _SHARE)


def _statistics_blocks(analysis: StudyAnalysis) -> list[Block]:
    """How the trials ended, and where the time went."""
    counts = analysis.statistics
    return [
        Heading("Where the time went"),
        Facts(statistics_facts(counts)),
        *_folded(Table.of(_KINDS, counts["kinds"], "How the trials ended")),
        *_folded(Table.of(_RUNGS, counts["rungs"], "Where trials were pruned")),
        *_folded(Table.of(_ROLES, counts["roles"], "What the runs were for")),
    ]


_COUNTS = {"without_pruning": "finished without pruning", "put_back": "put back"}


def statistics_facts(study: Row) -> list[tuple[str, str]]:
    """The counts and the budget, as name and value."""
    counts = ("finished", "complete", "pruned", "failed", *_COUNTS)
    facts = [(_COUNTS.get(name, name), f"{study[name]:,}") for name in counts]
    facts.append(("refused before a run", f"{sum(study['refused'].values()):,}"))
    facts += [(f"refused: {reason}", f"{count:,}") for reason, count in study["refused"].items()]
    facts += [(f"broke {broken}", f"{count:,}") for broken, count in study["broken"].items()]
    elapsed_s, budget_s = study["elapsed_s"], study["budget_s"]
    spent_s = study["spent_s"] if elapsed_s is None else elapsed_s
    spent = text.seconds(spent_s)
    if budget_s is not None:
        used = text.share(spent_s / budget_s) if budget_s > 0 else ""
        spent = f"{spent} of {text.seconds(budget_s)} ({used})"
    facts.append(("time", spent))
    if elapsed_s is not None:
        facts.append(("time of all hosts together", text.seconds(study["spent_s"])))
    if study["uncounted_s"] >= 1:
        facts.append(("time of runs that do not count", text.seconds(study["uncounted_s"])))
    if study["budget_trials"] is not None:
        of_budget = f"{study['finished']:,} of {study['budget_trials']:,}"
        facts.append(("trials of the budget", of_budget))
    if study["search_ended"]:
        facts.append(("the search ended", study["search_ended"]))
    return facts


def _folded(table: Table) -> list[Block]:
    return [replace(table, fold=table.label)] if table.rows else []


# More rows than this are not put into the page, which is to stay below a megabyte.
TRIALS_MAX = 300


def trials_section(analysis: StudyAnalysis) -> Section:
    """Every trial; the columns on repeats only where some were repeated."""
    rows, metric = analysis.history.trials, analysis.metric
    note = (
        "A trial's value is the mean of its runs, each seen relative to the anchors of its time; "
        "the spread is half of their range. Runs in brackets do not count, as the machine changed "
        f"meanwhile. The value of the best trial is {_searched(analysis.verdict)}."
    )

    def as_measured(row: TrialRow) -> Cell:
        return Cell(runs_as_measured(row, metric), len(row.runs))

    repeated = any(as_measured(row).text for row in rows)
    spread = [Column("spread", text.spread, "spread")] if repeated else []
    measured = [Column("as measured", as_measured)] if repeated else []
    of_options = []
    for parameter in analysis.parameters:
        name, option = parameter.name, partial(text.option, unit=parameter.unit)
        of_options.append(Column(name, option, ("options", name), style="name mono"))
    columns = [
        Column("trial", key="trial"),
        Column("outcome", _outcome_cell, number=False),
        Column("value", partial(text.quantity, metric), "value"),
        Column("to baseline", text.ratio, "ratio_to_baseline"),
        Column("runs", key=lambda row: len(row.runs)),
        *spread,
        Column("took", text.seconds, "elapsed_s"),
        *of_options,
        *measured,
    ]
    shown, fold = rows, f"All {text.count(len(rows), 'trial')}"
    if len(rows) > TRIALS_MAX:
        best = {row.trial for row in figures.best_first(analysis)[:TRIALS_MAX]}
        shown = tuple(row for row in rows if row.is_tuned or row.trial in best)
        fold = f"The best {len(shown)} of {len(rows):,} trials; the raw figures have all of them"
    marks = {number: "tuned" for number, row in enumerate(shown) if row.is_tuned}
    table = Table.of(columns, shown, "Trials", marks=marks, fold=fold, header=False, sortable=True)
    return Section("trials", "Trials", [Paragraph(note, "note"), table])


def runs_as_measured(row: TrialRow, metric: str) -> str:
    """The runs of a trial as measured, in their order; in brackets those that do not count.

    Empty where its value is just that of its only run.
    """
    if len(row.runs) == 1 and row.runs[0].value == row.value:
        return ""
    shown = []
    for run in row.runs:
        if run.value is not None:
            value = text.quantity(metric, run.value)
            shown.append(value if run.counts else f"({value})")
    return " · ".join(shown)


def _outcome_cell(row: TrialRow) -> Cell:
    """How a trial ended: where a pruned one was stopped, and what a whole one broke."""
    ended = f"{text.outcome(row.outcome.value)} {text.reached(row.censored)}".strip()
    ended += " (tuned)" if row.is_tuned else " (best)" if row.is_best else ""
    below = ["run again: the machine changed"] if row.run_again_after_change else []
    below += [f"breaks {constraint}" for constraint in row.broken]
    bad = row.outcome not in (Outcome.OK, Outcome.PRUNED)
    return Cell(ended, tone="fail" if bad else "", below=tuple(below))
