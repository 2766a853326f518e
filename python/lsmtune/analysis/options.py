"""The tuned Config beside the baseline, option by option."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.analysis.runs import chosen
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import OptionRow
from lsmtune.records.config import OptionValue


def baseline_options(records: StudyRecords) -> Mapping[str, OptionValue]:
    """What the baseline's runs were given: the study's fixed options, and the baseline's own."""
    return {**records.fixed, **records.baseline.options}


def option_rows(records: StudyRecords) -> tuple[OptionRow, ...]:
    """Every option that either arm sets: those of the space first, the changed before the others.

    Empty while the study has no Config to put forward.
    """
    tuned = chosen(records)
    if tuned is None:
        return ()
    space = {parameter.name: parameter for parameter in records.parameters}
    baseline = baseline_options(records)
    candidate = {**records.fixed, **tuned.config.options}
    rows = [
        OptionRow(
            name=name,
            baseline=baseline.get(name),
            tuned=candidate.get(name),
            tuned_by_study=name in space,
            unit=space[name].unit if name in space else "",
            engine_default=space[name].default if name in space else None,
        )
        for name in sorted({*baseline, *candidate})
    ]
    return tuple(sorted(rows, key=lambda row: (not row.tuned_by_study, not row.changed)))
