"""The parts of the Markdown report on noise and drift, the proof, and what was sustained."""

from __future__ import annotations

from lsmtune.analysis import StudyAnalysis
from lsmtune.analysis.trust_tables import AnchorSeries, LevelRow
from lsmtune.report import text
from lsmtune.report.headline import direction_words
from lsmtune.report.markdown_text import safe, section, table
from lsmtune.report.sustained import level_tables, performance_label
from lsmtune.report.trust_words import (
    correction_line,
    crash_words,
    drift_line,
    noise_figure,
    noise_source,
    proof_lines,
    provable,
)


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
