"""The Markdown report: verdict, options, figures and warnings, for a pull request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from lsmtune.analysis import StudyAnalysis
from lsmtune.records.measurement import Outcome
from lsmtune.report import text
from lsmtune.report.headline import direction_words, headline

_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def render(analysis: StudyAnalysis) -> str:
    """The report as Markdown with tables."""
    parts = [
        _verdict(analysis),
        _options(analysis),
        _notices(analysis),
        _engine(analysis),
        _pairs(analysis),
        _latency(analysis),
        _trials(analysis),
        _failures(analysis),
    ]
    return "\n".join(part for part in parts if part)


def _verdict(analysis: StudyAnalysis) -> str:
    head = headline(analysis)
    objective = analysis.objective
    goal = f"{text.metric_label(objective.metric)}, {direction_words(objective.direction)}"
    return (
        f"# {_safe(analysis.name)}\n\n**{_safe(head.label)}: {_safe(head.figure)}** "
        f"{_safe(head.lead)}\n\n{_safe(head.detail)}\n\nObjective: {_safe(goal)}.\n"
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
    rows.append(
        ("workload", f"{analysis.workload.name}, {text.number(analysis.workload.num)} keys")
    )
    measured = f"{text.count(len(analysis.runs), 'run')}, {text.seconds(analysis.measured_s)}"
    rows.append(("measured", measured))
    return _section("Machine and engine", ("fact", "value"), rows)


def _pairs(analysis: StudyAnalysis) -> str:
    metric = analysis.objective.metric
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
    metric = analysis.objective.metric
    rows = [
        (
            f"{row.trial}{' (tuned)' if row.is_tuned else ''}",
            text.outcome(row.outcome.value),
            text.quantity(metric, row.value),
            text.ratio(row.ratio_to_baseline),
            text.options_line(dict(row.options)),
        )
        for row in analysis.history.trials
    ]
    return _section("Trials", ("trial", "outcome", "value", "to baseline", "options"), rows)


def _failures(analysis: StudyAnalysis) -> str:
    rows = [
        (text.outcome(row.outcome.value), str(row.count), row.message) for row in analysis.failures
    ]
    return _section("Failures", ("outcome", "runs", "message"), rows)


def _section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(_safe(cell) for cell in row)} |\n" for row in rows]
    if not lines:
        return ""
    rule = f"| {' | '.join('---' for _ in columns)} |\n"
    return f"## {title}\n\n| {' | '.join(columns)} |\n{rule}{''.join(lines)}"


def _safe(value: object) -> str:
    """`value` as text of one line that Markdown and HTML take literally."""
    return _SPECIAL.sub(r"\\\1", escape(" ".join(str(value).split()), quote=False))
