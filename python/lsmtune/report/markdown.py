"""The Markdown report: verdict, options, figures and warnings, for a pull request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from lsmtune.analysis import StudyAnalysis
from lsmtune.analysis.insight_tables import Importance
from lsmtune.analysis.tables import TrialRow
from lsmtune.records.measurement import Outcome
from lsmtune.report import text
from lsmtune.report.headline import direction_words, headline
from lsmtune.report.words import importance_note, rank, rung_name, statistics_facts

_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def render(analysis: StudyAnalysis) -> str:
    """The report as Markdown with tables."""
    parts = [
        _verdict(analysis),
        _options(analysis),
        _notices(analysis),
        _engine(analysis),
        _pairs(analysis),
        _each_objective(analysis),
        _by_workload(analysis),
        _front(analysis),
        _latency(analysis),
        *(_importance(found) for found in analysis.importances),
        _statistics(analysis),
        _trials(analysis),
        _failures(analysis),
    ]
    return "\n".join(part for part in parts if part)


def _verdict(analysis: StudyAnalysis) -> str:
    head = headline(analysis)
    goals = [
        f"{text.metric_label(objective.label)}, {direction_words(objective.direction)}"
        for objective in analysis.objectives
    ]
    return (
        f"# {_safe(analysis.name)}\n\n**{_safe(head.label)}: {_safe(head.figure)}** "
        f"{_safe(head.lead)}\n\n{_safe(head.detail)}\n\nObjective: {_safe('; '.join(goals))}.\n"
    )


def _options(analysis: StudyAnalysis) -> str:
    rows = [
        (row.name, _or_default(row.baseline, row.unit), _or_default(row.tuned, row.unit))
        for row in analysis.options
    ]
    files = "".join(f"\n- {_safe(path)}" for path in analysis.result_files)
    return _section("Options", ("option", "baseline", "tuned"), rows) + (
        f"{files}\n" if files else ""
    )


def _or_default(value: str | int | float | bool | None, unit: str) -> str:
    return "engine's default" if value is None else text.option_told(value, unit)


def _notices(analysis: StudyAnalysis) -> str:
    if not analysis.notices:
        return ""
    lines = (
        f"- {notice.severity.value}: **{_safe(notice.title)}** {_safe(notice.text)}\n"
        for notice in analysis.notices
    )
    return "## Warnings\n\n" + "".join(lines)


def _engine(analysis: StudyAnalysis) -> str:
    rows: list[tuple[str, str]] = [("study folder", str(analysis.path))]
    for engine in analysis.engines:
        rows.append(("engine", f"{engine.name} {engine.version or '(version not known)'}"))
        rows.append(("build", engine.build.value))
        rows.append(("library", engine.library or "built into the driver"))
    rows += list(analysis.machine.items())
    rows += [
        ("workload", f"{weighted.label}, {text.number(weighted.workload.num)} keys")
        for weighted in analysis.workloads
    ]
    measured = f"{text.count(len(analysis.runs), 'run')}, {text.seconds(analysis.measured_s)}"
    rows.append(("measured", measured))
    return _section("Machine and engine", ("fact", "value"), rows)


def _pairs(analysis: StudyAnalysis) -> str:
    metric = analysis.metric
    rows = [
        (
            str(number),
            _value(metric, row.baseline_value, row.baseline_outcome),
            _value(metric, row.tuned_value, row.tuned_outcome),
            text.ratio(row.ratio),
        )
        for number, row in enumerate(analysis.pairs, 1)
    ]
    return _section("Tuned against default", ("pair", "baseline", "tuned", "ratio"), rows)


def _value(metric: str, value: float | None, outcome: Outcome | None) -> str:
    if value is not None:
        return text.quantity(metric, value)
    return text.outcome(outcome.value) if outcome else "not run"


def _by_workload(analysis: StudyAnalysis) -> str:
    rows = [
        (
            row.workload,
            text.share(row.share),
            text.metric_label(row.objective),
            text.quantity(row.metric, row.baseline),
            text.quantity(row.metric, row.tuned),
            text.ratio(row.ratio),
        )
        for row in analysis.by_workload
    ]
    columns = ("workload", "weight", "objective", "baseline", "tuned", "ratio")
    return _section("By workload", columns, rows)


def _each_objective(analysis: StudyAnalysis) -> str:
    others = () if analysis.verdict is None else analysis.verdict.others
    rows = [
        (
            text.metric_label(other.metric),
            direction_words(other.direction),
            text.ratio(other.ratio),
            f"{text.ratio(other.ratio_low)} to {text.ratio(other.ratio_high)}",
        )
        for other in others
    ]
    return _section("Each objective by itself", ("objective", "", "ratio", "interval"), rows)


def _front(analysis: StudyAnalysis) -> str:
    front = analysis.front
    if front is None:
        return ""
    columns = [text.metric_label(objective) for objective in front.objectives]
    rows = [
        (
            f"{row.trial}{' (picked)' if row.is_picked else ''}",
            *(text.quantity(m, value) for m, value in zip(front.metrics, row.values, strict=True)),
            text.ratio(row.gain),
            text.options_line(dict(row.options)),
        )
        for row in front.rows
    ]
    return _section("Front", ("trial", *columns, "gain", "options"), rows)


def _importance(found: Importance) -> str:
    title = f"## Parameter importance for {_safe(text.metric_label(found.metric))}\n\n"
    rows = [
        (
            row.parameter,
            text.share(row.importance),
            f"{text.share(row.importance_low)} to {text.share(row.importance_high)}",
            rank(row.rank_low, row.rank_high),
            "yes" if row.above_chance else "no",
            f"{row.trials:,}",
        )
        for row in found.rows
    ]
    columns = ("parameter", "importance", "interval", "rank", "above chance", "trials active in")
    return f"{title}{_safe(importance_note(found))}\n\n{_table(columns, rows)}"


def _statistics(analysis: StudyAnalysis) -> str:
    found = analysis.statistics
    kinds = [
        (
            text.outcome(row.outcome.value),
            f"{row.trials:,}",
            text.seconds(row.total_s),
            text.seconds(row.median_s),
            text.share(row.share),
        )
        for row in found.kinds
    ]
    rungs = [
        (rung_name(row), f"{row.trials:,}", text.seconds(row.total_s), text.seconds(row.median_s))
        for row in found.rungs
    ]
    return "\n".join(
        part
        for part in (
            _section("Statistics", ("figure", "value"), statistics_facts(found)),
            _table(("trials that ended", "trials", "time", "median", "of all time"), kinds),
            _table(("pruned", "trials", "time", "median"), rungs),
        )
        if part
    )


def _latency(analysis: StudyAnalysis) -> str:
    rows = [
        (
            f"{curve.operation}, {curve.arm.value}",
            text.duration_us(curve.latency_us_p50),
            text.duration_us(curve.latency_us_p95),
            text.duration_us(curve.latency_us_p99),
            text.duration_us(curve.latency_us_p999),
            text.duration_us(curve.latency_us_max),
        )
        for curve in sorted(analysis.latencies, key=lambda curve: curve.operation)
    ]
    columns = ("operation", "median", "p95", "p99", "p99.9", "max")
    return _section("Latency percentiles", columns, rows)


def _trials(analysis: StudyAnalysis) -> str:
    metric = analysis.metric
    rows = [
        (
            f"{row.trial}{' (tuned)' if row.is_tuned else ''}",
            _ended(row),
            text.quantity(metric, row.value),
            text.ratio(row.ratio_to_baseline),
            text.options_line(dict(row.options)),
        )
        for row in analysis.history.trials
    ]
    return _section("Trials", ("trial", "outcome", "value", "to baseline", "options"), rows)


def _ended(row: TrialRow) -> str:
    """How a trial ended: where a pruned one was stopped, and what a whole one broke."""
    told = f"{text.outcome(row.outcome.value)} {text.reached(row.censored)}".strip()
    return "; ".join([told, *(f"breaks {constraint}" for constraint in row.broken)])


def _failures(analysis: StudyAnalysis) -> str:
    rows = [
        (text.outcome(row.outcome.value), str(row.count), row.message) for row in analysis.failures
    ]
    return _section("Failures", ("outcome", "runs", "message"), rows)


def _section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    table = _table(columns, rows)
    return f"## {title}\n\n{table}" if table else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(_safe(cell) for cell in row)} |\n" for row in rows]
    if not lines:
        return ""
    rule = f"| {' | '.join('---' for _ in columns)} |\n"
    return f"| {' | '.join(_safe(column) for column in columns)} |\n{rule}{''.join(lines)}"


def _safe(value: object) -> str:
    """`value` as text of one line that Markdown and HTML take literally."""
    return _SPECIAL.sub(r"\\\1", escape(" ".join(str(value).split()), quote=False))
