"""Parameter slices: one option of the space against the objective, over all trials."""

from __future__ import annotations

from lsmtune.analysis.runs import chosen, value_of
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Place, Slice, SlicePoint
from lsmtune.records.config import OptionValue
from lsmtune.space import Parameter


def slices(records: StudyRecords) -> tuple[Slice, ...]:
    """A slice for every parameter of the space, in its order, with a point for every trial."""
    return tuple(_slice(records, parameter) for parameter in records.parameters)


def _slice(records: StudyRecords, parameter: Parameter) -> Slice:
    tuned = chosen(records)
    points = []
    for trial in records.trials:
        option = trial.config.options.get(parameter.name)
        points.append(
            SlicePoint(
                trial=trial.number,
                option_value=option,
                value=value_of(records, trial.values),
                outcome=trial.outcome,
                place=_place(parameter, option),
                is_tuned=tuned is not None and trial.number == tuned.trial,
            )
        )
    return Slice(
        parameter=parameter,
        points=tuple(points),
        baseline=records.baseline.options.get(parameter.name),
        tuned=None if tuned is None else tuned.config.options.get(parameter.name),
    )


def _place(parameter: Parameter, value: OptionValue | None) -> Place:
    if value is None:
        return Place.INACTIVE
    special = any(special.value == value for special in parameter.specials)
    return Place.SPECIAL if special else Place.RANGE
