"""Parameter slices: one option of the space against the objective, over all trials."""

from __future__ import annotations

from lsmtune.analysis.runs import chosen, trials_of
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Slice, SlicePoint
from lsmtune.space import Parameter


def slices(records: StudyRecords) -> tuple[Slice, ...]:
    """A slice for every parameter of the space, in its order; trials without a value are left out.

    A parameter that was not active in a trial has no point there.
    """
    return tuple(_slice(records, parameter) for parameter in records.parameters)


def _slice(records: StudyRecords, parameter: Parameter) -> Slice:
    tuned = chosen(records)
    points = []
    for stored in trials_of(records):
        value = records.objective.value(stored.measurement)
        option = stored.config.options.get(parameter.name)
        if value is None or option is None or stored.trial is None:
            continue
        points.append(
            SlicePoint(
                trial=stored.trial,
                option_value=option,
                value=value,
                is_tuned=tuned is not None and stored.trial == tuned.trial,
            )
        )
    return Slice(
        parameter=parameter,
        points=tuple(points),
        baseline=records.baseline.options.get(parameter.name),
        tuned=None if tuned is None else tuned.config.options.get(parameter.name),
    )
