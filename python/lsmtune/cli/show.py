"""`lsmtune show`: a study in one screen, also while it runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from lsmtune.cli.flags import JsonOption, StudyArgument, StudyDirOption, command
from lsmtune.cli.output import print_json, print_view
from lsmtune.model.config import EngineIdentity
from lsmtune.model.verdict import VerdictOutcome

if TYPE_CHECKING:
    from lsmtune.report.source import Chosen, StudyRecords
    from lsmtune.report.tables import TrialRow

EXAMPLES = ("lsmtune show study.yaml", "lsmtune show study.lsmtune --json")
_OPTIONS, _PRICES, _WARNINGS = 6, 4, 2
app = typer.Typer()


@dataclass(frozen=True)
class Overview:
    """A study as it is now: `tuned` is what it puts forward, in `row` if it is that of a trial.

    `spent_s` is what the study cost so far.
    """

    records: StudyRecords
    tuned: Chosen | None
    row: TrialRow | None
    engine: EngineIdentity
    spent_s: float


@command(app, "show", EXAMPLES)
def _show(
    study: StudyArgument, directory: StudyDirOption = None, as_json: JsonOption = False
) -> None:
    """Show a study in one screen: target, best so far, verdict and price, what to do next."""
    from lsmtune.cli.choices import study_folder
    from lsmtune.experiment.folder import StudyFolder
    from lsmtune.report.document import Facts, Paragraph
    from lsmtune.report.history import history
    from lsmtune.report.source import chosen, read_study
    from lsmtune.study.session import time_spent_s

    with StudyFolder.open(study_folder(study, "show", directory)) as folder:
        records, spent_s = read_study(folder), time_spent_s(folder.measurements)
    runs = records.measurements
    engine = runs[-1].measurement.engine if runs else EngineIdentity(records.spec.engine_name)
    row = next((row for row in history(records).trials if row.is_tuned), None)
    overview = Overview(records, chosen(records), row, engine, spent_s)
    if as_json:
        print_json(_document(overview))
        return
    print_view([Paragraph(_title(overview), "title"), Facts([*_rows(overview)])])


def _title(overview: Overview) -> str:
    spec = overview.records.spec
    loads = (f"{each.label}, {each.workload.num:,} records" for each in spec.workloads)
    version = f" {overview.engine.version}" if overview.engine.version else ""
    return f"{spec.name}: {spec.engine_name}{version}; {'; '.join(loads)}"


def _rows(overview: Overview) -> Iterator[tuple[str, str]]:
    """What is shown, each line beside its label."""
    from lsmtune.report.verdict import price_lines, size_lines, verdict_line

    verdict = overview.records.verdict
    yield "target", _target(overview.records)
    yield "budget", _budget(overview)
    yield from _best(overview)
    if verdict is None:
        yield "verdict", "none yet: what the search found is a promise, not a proof"
    else:
        yield "verdict", verdict_line(verdict)
        yield from _labelled("price", price_lines(verdict), _PRICES)
        yield from _labelled("proved at", size_lines(verdict), 2)
    yield from _labelled("warning", _warnings(overview.records), _WARNINGS)
    yield from _labelled("next", _next(overview), 2)


def _labelled(label: str, lines: list[str], most: int) -> list[tuple[str, str]]:
    """`most` of `lines`, and how many more there are; a terminal shows the label once."""
    left = len(lines) - most
    shown = lines[:most] + ([f"and {left} more: lsmtune report"] if left > 0 else [])
    return [(label, line) for line in shown]


def _target(records: StudyRecords) -> str:
    from lsmtune.report.words import direction_words, metric_label

    spec = records.spec
    objectives = ", ".join(
        f"{metric_label(each.label)} ({direction_words(each.direction)})"
        for each in spec.goal.objectives
    )
    constraints = "".join(f", {each.text}" for each in spec.constraints)
    guards = ", ".join(each.text for each in spec.guards)
    price = f"; at a price of at most {guards}" if guards else ""
    return f"{objectives}{constraints}{price}"


def _budget(overview: Overview) -> str:
    from lsmtune.report.words import count, seconds

    budget, trials = overview.records.spec.budget, len(overview.records.trials)
    bounds = [] if budget.time_s is None else [seconds(budget.time_s)]
    bounds += [] if budget.trials is None else [count(budget.trials, "trial")]
    bad = sum(trial.end.values is None for trial in overview.records.trials)
    without = f", {bad:,} of them without a value" if bad else ""
    used = f"{seconds(round(overview.spent_s))} and {count(trials, 'trial')} so far{without}"
    return f"{' or '.join(bounds) or 'none'}; {used}"


def _best(overview: Overview) -> Iterator[tuple[str, str]]:
    """The configuration that is put forward, what it came to in the search, what it differs in."""
    from lsmtune.report.differences import difference_lines
    from lsmtune.report.source import metric_of
    from lsmtune.report.words import none_best, plain_ratio, quantity
    from lsmtune.study.start import baseline_config

    if overview.tuned is None:
        valued = any(trial.end.values is not None for trial in overview.records.trials)
        yield "best", f"no trial {none_best(valued=valued)}"
        return
    best, row = "a configuration of no trial", overview.row
    if row is not None:
        best = f"trial {row.trial}: {quantity(metric_of(overview.records), row.value)}"
        if row.ratio_to_baseline is not None:
            best += f", {plain_ratio(row.ratio_to_baseline)}x the baseline's in the search"
    yield "best", best
    spec = overview.records.spec
    baseline, engine = baseline_config(spec), spec.engine_name
    for line in difference_lines(overview.tuned.config, baseline, engine, spec.defaults, _OPTIONS):
        yield "best", line


def _warnings(records: StudyRecords) -> list[str]:
    from lsmtune.report.notices import warnings_of

    return [each.title for each in warnings_of(records)]


def _next(overview: Overview) -> list[str]:
    """The commands that go on from here, with the folder that is shown."""
    from lsmtune.cli.choices import is_beside, shortest
    from lsmtune.engines.formats import own_format

    spec, verdict, path = overview.records.spec, overview.records.verdict, overview.records.path
    file = goes_on = shlex.quote(shortest(spec.path))
    if not is_beside(path, spec.path):
        named = shlex.quote(shortest(path))
        file, goes_on = named, f"{goes_on} --dir {named}"
    if verdict is None:
        return [f"lsmtune tune {goes_on}"]
    own = own_format(spec.engine_name)
    if verdict.outcome is VerdictOutcome.BETTER and own is not None:
        export = f"lsmtune export {file} --format {own.name} --output {own.file_name}"
        return [export, f"lsmtune report {file}"]
    if verdict.outcome is VerdictOutcome.NOT_PROVEN:
        more = f"lsmtune tune {goes_on} --budget TIME   # more than before"
        return [more, f"lsmtune report {file}"]
    return [f"lsmtune report {file}"]


def _document(overview: Overview) -> dict[str, object]:
    from lsmtune.engines.differences import differences
    from lsmtune.report.proof import survival
    from lsmtune.report.source import metric_of
    from lsmtune.study.observer import verdict_document
    from lsmtune.study.start import baseline_config

    records, tuned, row = overview.records, overview.tuned, overview.row
    spec, verdict = records.spec, records.verdict
    best = None
    if tuned is not None:
        baseline = baseline_config(spec).options
        differing = differences(spec.engine_name, tuned.config.options, baseline, spec.defaults)
        best = {
            "trial": tuned.trial,
            "metric": metric_of(records),
            "value": None if row is None else row.value,
            "ratio_to_baseline": None if row is None else row.ratio_to_baseline,
            "options": dict(tuned.config.options),
            "differs": {each.option: each.value for each in differing},
        }
    return {
        "study": {"name": spec.name, "file": str(spec.path), "folder": str(records.path)},
        "engine": {"name": spec.engine_name, "version": overview.engine.version},
        "workloads": [each.label for each in spec.workloads],
        "target": _target(records),
        "budget": {"time_s": spec.budget.time_s, "trials": spec.budget.trials},
        "spent_s": overview.spent_s,
        "trials": len(records.trials),
        "best": best,
        "verdict": None if verdict is None else verdict_document(verdict),
        **survival(records).document(),
        "warnings": _warnings(records),
        "next": _next(overview),
    }
