"""Runs that fail for what the study file says: errors of the user's, not of a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.memory_model import memory_model
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import metric_value
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, RunError
from lsmtune.model.metrics import METRICS, PHASE_METRICS, SHORT_NAMES
from lsmtune.model.workload import Workload
from lsmtune.space.constraint import Constraint, ConstraintKind
from lsmtune.study.build import place_of
from lsmtune.study.spec import Spec
from lsmtune.units import format_bytes
from lsmtune.workloads.distributions import data_bytes


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
    values = [
        f"{objective.metric} is {objective.value(run):g} under {weighted.label}"
        for objective in spec.goal.objectives
        for weighted, run in zip(spec.workloads, runs, strict=True)
        if (objective.value(run) or 0) <= 0
    ]
    return LsmtuneError(
        f"{spec.path}: the study cannot start: {', '.join(values)} in the baseline's run; "
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
    """`error` at the place where the study file states the option that the driver names."""
    field = error.field or ""
    option = field.removeprefix("options.")
    stated = {
        "space": [parameter.name for parameter in spec.space.parameters],
        "baseline": list(spec.baseline.options),
        "options": list(spec.fixed),
    }
    places = (
        f"{section}.{name}"
        for section, names in stated.items()
        for name in names
        if option == name or option.startswith(f"{name}.")
    )
    field = next(places, field)
    return error.input_error(place_of(spec, field), field)


# --- Which configurations of a study may be run, and which measurements meet its constraints.

_MEMORY_MODEL = "memory_model_bytes"


class Feasibility:
    """The constraints of one study, with the values of whatever they may name."""

    def __init__(self, spec: Spec, defaults: Mapping[str, OptionValue] | None = None) -> None:
        """`defaults` are those of the engine that is measured; of the newest one when not given."""
        self._spec = spec
        self._defaults = engine_defaults(spec, None) if defaults is None else defaults
        self._facts = [_facts(weighted.workload) for weighted in spec.workloads]
        self._before = [c for c in spec.constraints if c.kind is ConstraintKind.OPTIONS]
        self._after = [c for c in spec.constraints if c.kind is ConstraintKind.OUTCOME]

    def refusal(self, values: Mapping[str, OptionValue]) -> str:
        """Why a candidate with `values` may not be run, in one line; empty when it may."""
        return self.refusal_of({**self._spec.fixed, **values})

    def refusal_of(self, options: Mapping[str, OptionValue]) -> str:
        """The same for the whole of a configuration's `options`."""
        memory_bytes = self._memory_bytes(options)
        limit_bytes = self._spec.limits.memory_bytes
        if memory_bytes > limit_bytes:
            # Without the amount, so that refusals for one reason can be counted together.
            return f"may come to use more memory than the limit of {format_bytes(limit_bytes)}"
        broken = next(self._broken(options, memory_bytes), None)
        return "" if broken is None else f"breaks {broken[0]}"

    def broken(self, options: Mapping[str, OptionValue]) -> dict[str, float]:
        """The constraints on options that `options` break, and by how much.

        No candidate that is run breaks one, but a stored trial may break one that is new.
        """
        return dict(self._broken(options, self._memory_bytes(options)))

    def _broken(
        self, options: Mapping[str, OptionValue], memory_bytes: int
    ) -> Iterator[tuple[str, float]]:
        if not self._before:
            return
        known = {**self._defaults, **options, _MEMORY_MODEL: memory_bytes}
        for constraint in self._before:
            if constraint.option_names - known.keys():
                continue  # only a baseline leaves open what every candidate has (study.build)
            worst = max(constraint.violation({**known, **facts}) for facts in self._facts)
            if worst > 0:
                yield constraint.text, worst

    def violations(
        self, options: Mapping[str, OptionValue], runs: Sequence[Measurement]
    ) -> dict[str, float]:
        """By how much each constraint on outcomes is broken by `runs`, one per workload.

        0 or less where it holds; the worst of all workloads and measure phases counts. Raises
        `InputError` for a constraint on a metric that a run did not observe.
        """
        return self._violations(self._after, options, runs)

    def picks(self, options: Mapping[str, OptionValue], runs: Sequence[Measurement]) -> bool:
        """Whether a point of the front meets what the study wants of the one it picks."""
        broken = self._violations(self._spec.pick_where, options, runs)
        return all(violation <= 0 for violation in broken.values())

    def _violations(
        self,
        constraints: Sequence[Constraint],
        options: Mapping[str, OptionValue],
        runs: Sequence[Measurement],
    ) -> dict[str, float]:
        if not constraints:
            return {}
        known = {**self._defaults, **options, _MEMORY_MODEL: self._memory_bytes(options)}
        broken: dict[str, float] = {}
        for facts, run in zip(self._facts, runs, strict=True):
            observations = _observations(run)
            for constraint in constraints:
                if constraint.option_names - known.keys():
                    continue
                names = constraint.metric_names
                telling = [observed for observed in observations if names <= observed.keys()]
                if not telling:
                    least = min((names - observed.keys() for observed in observations), key=len)
                    why = (
                        f"{self._spec.engine_name} did not observe {min(least)} under this workload"
                    )
                    field = constraint.expression.field
                    raise InputError(str(self._spec.path), field, why=why)
                violation = max(
                    constraint.violation({**known, **facts, **observed}) for observed in telling
                )
                broken[constraint.text] = max(violation, broken.get(constraint.text, violation))
        return broken

    def _memory_bytes(self, options: Mapping[str, OptionValue]) -> int:
        """By the model of the engine; 0 for one that has none."""
        engine = self._spec.engine_name
        return memory_model(engine, options).total_bytes if engine in ENGINE_KINDS else 0


def _facts(workload: Workload) -> dict[str, OptionValue]:
    """What expressions may say of a workload."""
    return {
        "num": workload.num,
        "key_bytes": workload.key_bytes,
        "value_bytes": workload.value_bytes,
        "data_bytes": data_bytes(workload),
        "threads": max(phase.threads for phase in workload.phases),
    }


def _observations(run: Measurement) -> list[dict[str, OptionValue]]:
    """What each measure phase observed: by the metrics' names, and of all phases by `phase.metric`.

    A metric without a phase has to hold in every one. A run without phases has one element.
    """
    measured = [phase for phase in run.phases if phase.kind == "measure"]
    dotted = {
        f"{phase.name}.{name}": metric_value(run, name, phase)
        for phase in measured
        for name in PHASE_METRICS
    }
    names = (*METRICS, *SHORT_NAMES, *run.reported)
    observations: list[dict[str, OptionValue]] = []
    phases: list[PhaseMeasurement | None] = [*measured] or [None]
    for phase in phases:
        values = {**dotted, **{name: metric_value(run, name, phase) for name in names}}
        observations.append({name: value for name, value in values.items() if value is not None})
    return observations


def engine_defaults(spec: Spec, version: str | None) -> Mapping[str, OptionValue]:
    """Option to default: what the study file states, else what the catalogue knows.

    `version` is the engine's: a ready space has the defaults of the newest one, which may not be
    those of the engine that is measured. None stands for the newest version of the catalogue.
    """
    own = {p.name: p.default for p in spec.space.parameters if p.default is not None}
    return {**own, **catalogue_defaults(spec.engine_name, version), **spec.stated_defaults}
