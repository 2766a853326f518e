"""Runs that fail for what the study file says: errors of the user's, not of a configuration."""

from __future__ import annotations

from collections.abc import Sequence

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.records.measurement import Measurement, Outcome, RunError
from lsmtune.spec import Spec, place_of

_OPTIONS = "options."  # how the driver names an option of the request


def without_baseline(spec: Spec, measurement: Measurement) -> LsmtuneError:
    """Why the study cannot start; an InputError when its engine refuses what the file says."""
    if measurement.outcome is Outcome.INVALID and measurement.error is not None:
        return _refused(spec, measurement.error)
    detail = f": {measurement.error.message}" if measurement.error else ""
    unseen = [o.metric for o in spec.goal.objectives if o.value(measurement) is None]
    if spec.objective.phase_of(measurement) is not None and not measurement.error and unseen:
        detail = f": it did not observe {unseen[0]}"
    return LsmtuneError(
        f"{spec.path}: the study cannot start: its baseline run ended "
        f"{measurement.outcome.value}{detail}"
    )


def without_mean(spec: Spec, runs: Sequence[Measurement]) -> LsmtuneError:
    """Why the study cannot start: an objective is not above 0 under one of several workloads."""
    seen = [
        f"{objective.metric} is {objective.value(run):g} under {weighted.label}"
        for objective in spec.goal.objectives
        for weighted, run in zip(spec.workloads, runs, strict=True)
        if (objective.value(run) or 0) <= 0
    ]
    return LsmtuneError(
        f"{spec.path}: the study cannot start: {', '.join(seen)} in the baseline's run; "
        "over several workloads only values above 0 have a mean"
    )


def unknown_option(spec: Spec, measurement: Measurement) -> InputError | None:
    """The error for an option that the engine does not have, else None.

    Other values may suit an option that refuses one. A mistyped name fails every trial.
    """
    error = measurement.error
    if measurement.outcome is not Outcome.INVALID or error is None or not error.is_unknown_option:
        return None
    return _refused(spec, error)


def _refused(spec: Spec, error: RunError) -> InputError:
    field = _field(spec, error.field or "")
    return error.input_error(place_of(spec, field), field)


def _field(spec: Spec, of_request: str) -> str:
    """Where the study file states the option that the driver calls `of_request`."""
    option = of_request.removeprefix(_OPTIONS)
    stated = {
        "space": [parameter.name for parameter in spec.space.parameters],
        "baseline": list(spec.baseline.options),
        "options": list(spec.fixed),
    }
    for section, names in stated.items():
        for name in names:
            if option == name or option.startswith(f"{name}."):
                return f"{section}.{name}"
    return of_request
