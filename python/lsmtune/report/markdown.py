"""The parts of the Markdown report on noise and drift, the proof, and what was sustained."""

from __future__ import annotations

from lsmtune.model.measurement import Outcome
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.pages import safe, section, table
from lsmtune.report.sentences import (
    condition_facts,
    correction_line,
    crash_words,
    direction_words,
    drift_line,
    headline,
    importance_note,
    level_tables,
    noise_figure,
    noise_source,
    performance_label,
    proof_lines,
    provable,
    rank,
    rung_name,
    runs_told,
    searched,
    statistics_facts,
    told_words,
)
from lsmtune.report.tables import Importance, TrialRow
from lsmtune.report.trust_tables import AnchorSeries, LevelRow


def proof_part(analysis: StudyAnalysis) -> str:
    """How the proof was made, and how the configuration stood a crash."""
    lines = proof_lines(analysis.verdict, analysis.proof)
    lines += [] if analysis.crash_test is None else [crash_words(analysis.crash_test)]
    return "".join(f"- {safe(line)}\n" for line in lines)


def others_part(analysis: StudyAnalysis) -> str:
    """The ratios of the other metrics."""
    verdict = analysis.verdict
    if verdict is None or not verdict.others:
        return ""
    rows = [
        (
            text.metric_label(other.metric),
            direction_words(other.direction),
            text.ratio(other.ratio),
            f"{text.ratio(other.ratio_low)} to {text.ratio(other.ratio_high)}",
        )
        for other in verdict.others
    ]
    found = section("Each metric by itself", ("metric", "", "ratio", "interval"), rows)
    return f"{found}\n{safe(correction_line(verdict, analysis.proof))}\n"


def noise_part(analysis: StudyAnalysis) -> str:
    """The anchors in one line per objective, and the noise."""
    several = len(analysis.anchors) > 1
    lines = [f"- {_drift(series, several=several)}\n" for series in analysis.anchors]
    rows = [
        (
            noise_source(row),
            "pair" if row.of_pairs else "run",
            noise_figure(row),
            "" if row.autocorrelation is None else f"{row.autocorrelation:+.2f}",
            provable(row),
        )
        for row in analysis.noise
    ]
    columns = ("noise from", "of a", "standard deviation", "autocorrelation", "provable")
    parts = [part for part in ("".join(lines), table(columns, rows)) if part]
    return "## Noise and drift\n\n" + "\n".join(parts) if parts else ""


def sustained_part(analysis: StudyAnalysis) -> str:
    """Burst, sustained and drain of both arms, and the trees they left."""
    rows = [
        (
            f"{row.phase}{f' under {row.workload}' if row.workload else ''}",
            performance_label(row.metric),
            text.quantity(row.metric, row.baseline),
            text.quantity(row.metric, row.tuned),
            text.ratio(row.ratio),
        )
        for row in analysis.performance
    ]
    columns = ("phase", "figure", "baseline", "tuned", "ratio")
    levels = (
        _level(f"{phase}{f' under {workload}' if workload else ''}, {arm.value}", row)
        for workload, phase, arm, found in level_tables(analysis.levels)
        for row in found
    )
    tree = ("tree at the end of", "level", "files", "size", "flushes", "compactions", "written")
    parts = (section("Burst and sustained", columns, rows), table(tree, levels))
    return "\n".join(part for part in parts if part)


def _drift(series: AnchorSeries, *, several: bool) -> str:
    label = f"{text.metric_label(series.objective)}: " if several else ""
    return safe(f"{label}{drift_line(series)}")


def _level(of: str, row: LevelRow) -> tuple[str, ...]:
    return (
        of,
        str(row.level),
        text.number(row.files),
        text.quantity("database_bytes", row.bytes),
        text.number(row.flushes) if row.level == 0 else "",
        text.number(row.compactions),
        text.quantity("database_bytes", row.compaction_write_bytes),
    )


# ----------
# The Markdown report: verdict, options, figures and warnings, for a pull request or a wiki.


def render(analysis: StudyAnalysis) -> str:
    """The report as Markdown with tables."""
    parts = [
        _verdict(analysis),
        proof_part(analysis),
        _options(analysis),
        _notices(analysis),
        _engine(analysis),
        _pairs(analysis),
        others_part(analysis),
        _by_workload(analysis),
        _front(analysis),
        sustained_part(analysis),
        _latency(analysis),
        noise_part(analysis),
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
        f"# {safe(analysis.name)}\n\n**{safe(head.label)}: {safe(head.figure)}** "
        f"{safe(head.lead)}\n\n{safe(head.detail)}\n\nObjective: {safe('; '.join(goals))}.\n"
    )


def _options(analysis: StudyAnalysis) -> str:
    rows = [
        (row.name, _or_default(row.baseline, row.unit), _or_default(row.tuned, row.unit))
        for row in analysis.options
    ]
    files = "".join(f"\n- {safe(path)}" for path in analysis.result_files)
    return section("Options", ("option", "baseline", "tuned"), rows) + (
        f"{files}\n" if files else ""
    )


def _or_default(value: str | int | float | bool | None, unit: str) -> str:
    return "engine's default" if value is None else text.option_told(value, unit)


def _notices(analysis: StudyAnalysis) -> str:
    if not analysis.notices:
        return ""
    lines = (
        f"- {notice.severity.value}: **{safe(notice.title)}** {safe(notice.text)}\n"
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
    rows += condition_facts(analysis.conditions)
    rows += [
        ("workload", f"{weighted.label}, {text.number(weighted.workload.num)} keys")
        for weighted in analysis.workloads
    ]
    measured = f"{text.count(len(analysis.runs), 'run')}, {text.seconds(analysis.measured_s)}"
    rows.append(("measured", measured))
    return section("Machine and engine", ("fact", "value"), rows)


def _pairs(analysis: StudyAnalysis) -> str:
    metric = analysis.metric
    rows = [
        (
            f"{number}{'' if row.counts else ' (does not count)'}",
            _value(metric, row.baseline_value, row.baseline_outcome),
            _value(metric, row.tuned_value, row.tuned_outcome),
            text.ratio(row.ratio),
        )
        for number, row in enumerate(analysis.pairs, 1)
    ]
    return section("Tuned against default", ("pair", "baseline", "tuned", "ratio"), rows)


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
    return section("By workload", columns, rows)


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
    return section("Front", ("trial", *columns, "gain", "options"), rows)


def _importance(found: Importance) -> str:
    title = f"## Parameter importance for {safe(text.metric_label(found.metric))}\n\n"
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
    return f"{title}{safe(importance_note(found))}\n\n{table(columns, rows)}"


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
            section("Statistics", ("figure", "value"), statistics_facts(found)),
            table(("trials that ended", "trials", "time", "median", "of all time"), kinds),
            table(("pruned", "trials", "time", "median"), rungs),
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
    return section("Latency percentiles", columns, rows)


def _trials(analysis: StudyAnalysis) -> str:
    metric = analysis.metric
    rows = [
        (
            f"{row.trial}{' (tuned)' if row.is_tuned else ''}",
            _ended(row),
            text.quantity(metric, row.value),
            text.ratio(row.ratio_to_baseline),
            f"{len(row.runs)} {text.spread(row.spread)}".strip(),
            runs_told(row, metric),
            told_words(row, metric),
            text.options_line(dict(row.options)),
        )
        for row in analysis.history.trials
    ]
    columns = ("trial", "outcome", "value", "to baseline", "runs, spread", "as measured")
    found = section("Trials", (*columns, "sampler was told", "options"), rows)
    best = analysis.history.best_trial
    if best is None:
        return found
    return f"{found}\nThe value of trial {best}, the best, is {searched(analysis.verdict)}.\n"


def _ended(row: TrialRow) -> str:
    """How a trial ended: where a pruned one was stopped, and what a whole one broke."""
    told = f"{text.outcome(row.outcome.value)} {text.reached(row.censored)}".strip()
    again = ["run again, as the machine changed"] if row.run_again_after_change else []
    return "; ".join([told, *again, *(f"breaks {constraint}" for constraint in row.broken)])


def _failures(analysis: StudyAnalysis) -> str:
    rows = [
        (text.outcome(row.outcome.value), str(row.count), row.message) for row in analysis.failures
    ]
    return section("Failures", ("outcome", "runs", "message"), rows)
