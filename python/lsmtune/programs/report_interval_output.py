"""The file of db_bench's `--report_interval_seconds`: operations per second, step by step.

    file = "secs_elapsed,interval_qps" { seconds "," rate }

Written by `ReporterAgent` of `tools/db_bench_tool.cc`; `interval_qps` is the number of operations
of the step divided by its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsmtune.programs.text_lines import LineReader

HEADING = re.compile(r"secs_elapsed,interval_qps")
_ROW = re.compile(r"(?P<elapsed>\d+),(?P<rate>\d+)")


@dataclass(frozen=True)
class ReportStep:
    """One step: its end since the benchmark began, in seconds, and operations per second."""

    elapsed_s: int
    throughput_ops_s: int


def parse_report(text: str, source: str) -> tuple[ReportStep, ...]:
    """The steps; the time begins anew with each benchmark. Raises InputError with the line."""
    lines = LineReader(text, source)
    lines.expect(HEADING, "secs_elapsed,interval_qps")
    steps: list[ReportStep] = []
    while lines.peek() is not None:
        row = lines.expect(_ROW, "seconds,operations per second")
        steps.append(ReportStep(int(row["elapsed"]), int(row["rate"])))
    return tuple(steps)
