"""What a study makes better: Objectives, and the Goal that makes them one number.

An Objective is a pure function from a Measurement to a value with a direction. Its metric is one of
a phase or of the whole run (`model.metrics`), or a name that a program of the user's own reported.

A study has one or several workloads, each with a weight, and one or several objectives. A value
over several workloads is the weighted geometric mean of the values of each: the ratio of two such
means is the weighted geometric mean of the ratios, whatever the scale of each workload (P. J.
Fleming, J. J. Wallace, "How not to lie with statistics", CACM 29(3), 1986).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from lsmtune.model.fields import STRICT, described
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement, total_metric
from lsmtune.model.metrics import DEFAULT_METRIC, HIGHER_IS_BETTER, PHASE_METRICS, SHORT_NAMES
from lsmtune.model.workload import Phase, Workload


class Direction(StrEnum):
    """Which way is better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"

    def better(self, value: float, other: float) -> bool:
        """Whether `value` is better than `other`; equal values are not."""
        return value > other if self is Direction.MAXIMIZE else value < other


def default_direction(metric: str) -> Direction:
    """The direction in which `metric` is better unless the user says otherwise."""
    return Direction.MAXIMIZE if metric in HIGHER_IS_BETTER else Direction.MINIMIZE


@dataclass(frozen=True)
class Objective:
    """`metric` of the measure phase named `phase`; without a name, of the only or last one."""

    __pydantic_config__ = STRICT

    metric: Annotated[str, described("a metric of the measure phase", min_length=1)] = (
        DEFAULT_METRIC
    )
    direction: Annotated[
        Direction, described("maximize or minimize; follows from the metric when not given")
    ] = Direction.MAXIMIZE
    phase: Annotated[
        str | None, described("name of the measure phase; the last one when not given")
    ] = None

    def value(self, measurement: Measurement) -> float | None:
        """The metric's value, or None when the run did not end `ok` or did not observe it."""
        if measurement.outcome is not Outcome.OK:
            return None
        return metric_value(measurement, self.metric, self.phase_of(measurement))

    def phase_of(self, measurement: Measurement) -> PhaseMeasurement | None:
        """The phase that this objective looks at."""
        measured = [p for p in measurement.measured_phases if self.phase in (None, p.name)]
        return measured[-1] if measured else None

    def phase_in(self, workload: Workload) -> Phase:
        """The phase of `workload` that this objective looks at; the workload has it."""
        return [p for p in workload.measured_phases if self.phase in (None, p.name)][-1]

    @property
    def label(self) -> str:
        """The metric, with the phase where one is named: what tells objectives of a study apart."""
        return self.metric if self.phase is None else f"{self.phase}.{self.metric}"


def with_direction(stated: object) -> object:
    """An objective as a file states it: where it gives no direction, that of its metric."""
    if not isinstance(stated, dict) or stated.get("direction") is not None:
        return stated
    metric = stated.get("metric", DEFAULT_METRIC)
    direction = default_direction(metric if isinstance(metric, str) else "")
    return {**stated, "direction": direction.value}


def metric_value(
    measurement: Measurement, metric: str, phase: PhaseMeasurement | None
) -> float | None:
    """`metric` of the phase or of the whole run, or as a program reported it; None: not known."""
    metric = SHORT_NAMES.get(metric, metric)
    value = total_metric(measurement, metric)
    if phase is not None and metric in PHASE_METRICS:
        value = getattr(phase, metric)
    if value is None:
        value = measurement.reported.get(metric)
    return None if value is None else float(value)


@dataclass(frozen=True)
class WeightedWorkload:
    """One workload of a study; `parameters` are those that have an effect, defaults filled in."""

    label: str
    workload: Workload
    weight: float
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Pick:
    """How one configuration is chosen from a front: `weights` by the objectives' labels.

    An objective of weight 0 plays no part beyond the front itself. `best` alone counts where it is
    given, and all alike where there are no weights either. `where` are constraints on metrics.
    """

    __pydantic_config__ = STRICT

    weights: Annotated[
        dict[str, float],
        described("a number above 0 for each objective that counts, by its metric"),
    ] = field(default_factory=dict)
    best: Annotated[
        str | None, described("the objective that counts alone; in place of weights")
    ] = None
    where: Annotated[
        tuple[str, ...], described("what must hold of its metrics, such as latency_us_p99 <= 2000")
    ] = ()


@dataclass(frozen=True)
class Goal:
    """`objectives` over workloads of `shares`, which sum to 1; `pick` when there are several."""

    objectives: tuple[Objective, ...]
    shares: tuple[float, ...] = (1.0,)
    pick: Pick | None = None

    @property
    def several(self) -> bool:
        """Whether the search is for a front and not for one best value."""
        return len(self.objectives) > 1

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The direction of each objective."""
        return tuple(objective.direction for objective in self.objectives)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each objective, of 1 in all; without a pick all are the same."""
        stated = {} if self.pick is None else self.pick.weights
        if self.pick is not None and self.pick.best is not None:
            stated = {self.pick.best: 1.0}
        if not stated:
            return (1.0 / len(self.objectives),) * len(self.objectives)
        total = sum(stated.values())
        return tuple(stated.get(objective.label, 0.0) / total for objective in self.objectives)

    @cached_property
    def powers(self) -> dict[Objective, float]:
        """The objectives that the pick gives a weight, and that: below 0 where less is better."""
        weighted = zip(self.objectives, self.weights, strict=True)
        return {o: w if o.direction is Direction.MAXIMIZE else -w for o, w in weighted if w > 0}

    @cached_property
    def chosen(self) -> tuple[Objective, ...]:
        """The objectives that the pick gives a weight."""
        return tuple(self.powers)

    @property
    def metric(self) -> str:
        """What the number of `value` is, for people: a metric, or a product of powers of some."""
        if not self.several:
            return self.objectives[0].metric
        if len(self.chosen) == 1:
            return self.chosen[0].label
        return " * ".join(f"{o.label}^{power:g}" for o, power in self.powers.items())

    @property
    def direction(self) -> Direction:
        """Which way the number of `value` is better."""
        return self.chosen[0].direction if len(self.chosen) == 1 else Direction.MAXIMIZE

    def values(self, runs: Sequence[Measurement]) -> tuple[float, ...] | None:
        """The value of each objective over `runs`, one per workload; None when one is unknown.

        Over several workloads, values that are not above zero have no geometric mean: None.
        """
        values = tuple(self._mean(objective, runs) for objective in self.objectives)
        return None if None in values else values  # type: ignore[return-value]

    def value(self, runs: Sequence[Measurement]) -> float | None:
        """The one number: an objective's value, or the picked product of several."""
        values = self.values(runs)
        return None if values is None else self.number(values)

    def number(self, values: Sequence[float]) -> float | None:
        """The one number of the objectives' `values`; None where a product has none (values <= 0).

        The product of each value to the power of its weight, to the inverse where less is better.
        """
        known = dict(zip(self.objectives, values, strict=True))
        if len(self.chosen) == 1:
            return known[self.chosen[0]]
        powers = self.powers
        if any(known[objective] <= 0 for objective in powers):
            return None
        return math.exp(sum(power * math.log(known[o]) for o, power in powers.items()))

    def _mean(self, objective: Objective, runs: Sequence[Measurement]) -> float | None:
        values = [value for run in runs if (value := objective.value(run)) is not None]
        if not len(values) == len(runs) == len(self.shares):
            return None
        if len(values) == 1:
            return values[0]
        if any(value <= 0 for value in values):
            return None
        return math.exp(
            sum(share * math.log(value) for share, value in zip(self.shares, values, strict=True))
        )


def outcome_of(runs: Sequence[Measurement]) -> Outcome:
    """How the runs of one trial ended together: the first outcome that is not `ok`."""
    return next((run.outcome for run in runs if run.outcome is not Outcome.OK), Outcome.OK)
