"""What the live page shows, as Documents: what runs now, all studies, two studies or two trials.

The rest of a study's page is its report (`report.study`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.engines.differences import differences
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.report import study_proof
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.chart import Axis, Form, Point, Series
from lsmtune.report.differences import difference_table
from lsmtune.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
    chart_of,
    words,
)
from lsmtune.study.live import Live, LiveRun, State

_STATES = {
    State.RUNNING: "Running",
    State.PAUSED: "Paused",
    State.ENDED: "Not running",
}


@dataclass(frozen=True)
class Shown:
    """A study as a live page has it: `fragments` are the sections of its `report` as HTML.

    `live` is None, or of a tuner that is gone, when it rests.
    """

    place: str
    path: Path
    analysis: StudyAnalysis
    report: Document
    fragments: Mapping[str, str]
    live: Live | None = None


def now_section(live: Live | None) -> Section:
    """What the tuner does now, until when, and what it said."""
    if live is None or live.state is State.ENDED:
        blocks: list[Block] = [Paragraph("No tuner works on this study.", "note")]
        blocks += _notes(live)
        return Section("now", _STATES[State.ENDED], blocks, "Now", tone="open")
    facts = [("stage", live.stage)]
    if live.spent_s is not None:
        facts.append(("time so far", text.seconds(live.spent_s)))
        if live.time_s is not None:
            facts.append(("time left", text.seconds(max(live.time_s - live.spent_s, 0.0))))
    if live.trials is not None:
        facts.append(("trials at most", text.number(live.trials)))
    run = live.run
    doing = "Between two runs." if run is None else f"{text.sentence(run_name(run))}."
    if live.state is State.PAUSED:
        doing = "Paused after the last run."
    blocks = [Paragraph(doing, "note"), Facts(facts)]
    if run is not None:
        blocks += _run_blocks(run)
    return Section("now", _STATES[live.state], [*blocks, *_notes(live)], "Now", tone="good")


def run_name(run: LiveRun) -> str:
    """`trial 7, again`, `pair 2, the candidate`: which run it is."""
    named = {"proof_baseline": "the baseline", "proof_candidate": "the candidate"}
    if run.role in named:
        return f"pair {run.index + 1} of the proof, {named[run.role]}"
    where = " at the size of the proof" if run.role == "promotion" else ""
    if run.trial is None:
        return f"the baseline{where}" if where else f"{run.role.replace('_', ' ')} {run.index}"
    repeated = ", run again" if run.repeat and run.role == "trial" else ""
    return f"trial {run.trial}{repeated}{where}"


def _run_blocks(run: LiveRun) -> list[Block]:
    points = [Point(at_s, rate) for at_s, rate in run.series]
    series = [Series(Form.LINE, "tuned", points)]
    across = Axis("seconds since the phase began", zero=True)
    label = f"Operations per second of {run.phase or 'the run'} of {run.workload}"
    rate = Axis("operations per second", zero=True)
    options = Paragraph(text.options_line(run.options), "detail")
    return [options, *chart_of(label, across, rate, series, height=190)]


def _notes(live: Live | None) -> list[Block]:
    return [Notices([Notice(note) for note in reversed(live.notes)])] if live and live.notes else []


# --- All studies, and two beside each other


def overview_document(studies: Sequence[Shown], broken: Mapping[str, str]) -> Document:
    """A line for each study; `broken` are those that cannot be read, and why."""
    columns = (
        *words("study", "engine", "workload", "state"),
        Column("trials"),
        *words("best of the search", "verdict"),
    )
    rows = []
    for shown in studies:
        analysis = shown.analysis
        name = Cell(analysis.name, below=(str(shown.path),))
        engine = next((each.title for each in analysis.engines), "")
        labels = ", ".join(weighted.label for weighted in analysis.workloads)
        state = State.ENDED if shown.live is None else shown.live.state
        trials, ratio = len(analysis.history.trials), analysis.history.best_ratio
        best = Cell(text.ratio(ratio), ratio)
        head = study_proof.headline(analysis)
        verdict = f"{head.label}: {head.figure}"
        rows.append((name, engine, labels, _STATES[state], trials, best, verdict))
    blocks: list[Block] = [Table(columns, rows, "Studies", header=False, sortable=True)]
    if broken:
        blocks.append(Notices([Notice(why, path) for path, why in broken.items()]))
    section = Section("studies", "Studies", blocks)
    count = "1 study" if len(studies) == 1 else f"{len(studies):,} studies"
    return Document("Studies", count, [section])


def compared_document(one: Shown, other: Shown) -> Document:
    """Two studies: their verdicts, and the options that they would deploy."""
    sections, both = [], (one.analysis, other.analysis)
    for place, analysis in zip(("one", "other"), both, strict=True):
        section = study_proof.verdict_section(analysis, study_proof.headline(analysis))
        title = f"{analysis.name}: {section.title}"
        sections.append(replace(section, id=place, title=title, short=analysis.name))
    sides = [
        {row["name"]: row["tuned"] for row in analysis.options if row["tuned"] is not None}
        for analysis in both
    ]
    names = [analysis.name for analysis in both]
    blocks: list[Block] = [_options_table(both, sides, names)]
    without = [analysis.name for analysis in both if not analysis.options]
    if without:
        blocks = [Paragraph(f"Nothing to deploy yet: {' and '.join(without)}.", "quiet")]
    asked = [(each.metric, each.objectives, each.workloads) for each in both]
    if asked[0] != asked[1]:
        line = "These studies ask different questions: another workload, size or objective."
        blocks.insert(0, Notices([Notice(line)]))
    sections.append(Section("options", "Options that differ", blocks))
    return Document(" and ".join(names), "two studies", sections)


def diff_document(shown: Shown, one: int, other: int) -> Document:
    """Two trials of a study. Raises InputError where it has not both."""
    analysis = shown.analysis
    rows = {row.trial: row for row in analysis.history.trials}
    if one not in rows or other not in rows:
        raise InputError("diff", why=f"the study has not both trials {[one, other]}")
    both, metric = (rows[one], rows[other]), analysis.metric
    names = [f"trial {row.trial}" for row in both]
    facts = [
        ("outcome", *(text.outcome(row.outcome) for row in both)),
        (text.metric_label(metric), *(text.quantity(metric, row.value) for row in both)),
        ("to the baseline", *(text.ratio(row.ratio_to_baseline) for row in both)),
        ("breaks", *(", ".join(row.broken) or "nothing" for row in both)),
        ("took", *(text.seconds(row.elapsed_s) for row in both)),
    ]
    table = Table(words("", *names), facts, "Both trials")
    options = _options_table([analysis], [row.options for row in both], names)
    errors = [Notice(row.error, f"trial {row.trial}") for row in both if row.error]
    blocks: list[Block] = [table]
    if errors:
        blocks.append(Notices(errors))
    sections = [Section("both", "Both trials", blocks), Section("options", "Options", [options])]
    return Document(" and ".join(names), analysis.name, sections)


def _options_table(
    studies: Sequence[StudyAnalysis],
    sides: Sequence[Mapping[str, OptionValue]],
    names: Sequence[str],
) -> Table | Paragraph:
    """What two configurations of `studies` differ in; defaults count where one version ran all."""
    engines = {engine.title: engine.name for study in studies for engine in study.engines}
    rows = [row for study in studies for row in study.options] if len(engines) == 1 else []
    known = {row["name"]: row["engine_default"] for row in rows}
    one, other = sides
    differing = differences(next(iter(engines.values()), ""), one, other, known)
    return difference_table(differing, *names)
