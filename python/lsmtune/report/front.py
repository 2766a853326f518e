"""Where a study's choice stands: the front, each workload of several, the edges of ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.report.history import ratio
from lsmtune.report.source import (
    StudyRecords,
    arms,
    best_trial,
    chosen,
    counted_pairs,
    metric_of,
    value_of,
)
from lsmtune.report.tables import GAIN, Arm, Front, FrontRow, Row
from lsmtune.space.parameter import Parameter
from lsmtune.space.range import Range
from lsmtune.stats.pareto import front as front_of


def front(records: StudyRecords) -> Front | None:
    """The trials that no other beats, in the order of the first objective; None with one alone.

    A trial that broke a constraint is not on the front, and keeps no other off it.
    """
    goal, rounds = records.spec.goal, records.baseline_values
    if not goal.several:
        return None
    ended = [(trial, trial.values) for trial in records.trials if trial.values]
    valued = [(trial, values) for trial, values in ended if all(map(math.isfinite, values))]
    allowed = [(trial, values) for trial, values in valued if not trial.broken]
    maximize = [direction is Direction.MAXIMIZE for direction in goal.directions]
    on = [allowed[k] for k in front_of([values for _, values in allowed], maximize)]
    on.sort(key=lambda entry: entry[1][0], reverse=maximize[0])
    kept = {trial.number for trial, _ in on}
    baseline = tuple(median(column) for column in zip(*rounds, strict=True)) if rounds else None
    known = baseline or (None,) * len(goal.objectives)
    tuned, picked = chosen(records), best_trial(records)
    return Front(
        objectives=tuple(objective.label for objective in goal.objectives),
        metrics=tuple(objective.metric for objective in goal.objectives),
        directions=tuple(direction.value for direction in goal.directions),
        weights=goal.weights,
        baseline=baseline,
        rows=tuple(
            FrontRow(
                trial=trial.number,
                values=values,
                ratios=tuple(map(ratio, values, known)),
                gain=value_of(records, values) if metric_of(records) == GAIN else None,
                is_picked=picked is not None and trial.number == picked.number,
                is_tuned=tuned is not None and trial.number == tuned.trial,
                options=dict(trial.config.options),
            )
            for trial, values in on
        ),
        others=tuple((t.number, values) for t, values in valued if t.number not in kept),
    )


def workload_rows(records: StudyRecords) -> list[Row]:
    """Each objective under each workload, on both arms; empty for a single workload.

    Medians over the pairs of the proof that are whole on both sides; before any proof, over the
    runs of the search. The ratio is of these medians.
    """
    goal, workloads = records.spec.goal, records.spec.workloads
    if len(workloads) == 1:
        return []
    pairs = [pair for pair in counted_pairs(records) if len(pair) == len(Arm)]
    sides = {arm: [run for pair in pairs for run in pair[arm]] for arm in Arm}
    sides = sides if pairs else arms(records)
    rows = []
    for index, workload in enumerate(workloads):
        for objective in goal.objectives:
            medians: list[float | None] = []
            for arm in Arm:
                runs = [run.measurement for run in sides[arm] if run.workload == index]
                values = [v for v in map(objective.value, runs) if v is not None]
                medians.append(median(values) if values else None)
            baseline, tuned = medians
            rows.append(
                {
                    "workload": workload.label,
                    "share": goal.shares[index],
                    "objective": objective.label,
                    "metric": objective.metric,
                    "baseline": baseline,
                    "tuned": tuned,
                    "ratio": ratio(tuned, baseline),
                }
            )
    return rows


# --- Best values on the edge of a range, and a wider range to try: the optimum may lie beyond

# How far a range is widened on the side of the edge: by a factor on a log scale, else by a share
# of its width. Two doublings reach a new region without leaving most of the old one behind.
_FACTOR = 4
_SHARE = 0.5
# A sampler that wants to go beyond an edge stops short of it by a little: so near is on it.
_NEAR = 0.01  # of the range, on its own scale


@dataclass(frozen=True)
class Edge:
    """`value` of `parameter` is on its `side` (`low` or `high`); `proposed` is the range to try.

    On the side is also what is within 1 % of the range of it, on the range's scale. `proposed` is
    None where nothing sensible lies beyond (a range that begins at zero or one, or next to a
    special value).
    """

    parameter: Parameter
    side: str
    value: OptionValue
    proposed: tuple[float, float] | None

    def bound(self) -> float:
        """The bound of the range on that side; 0 for what has no range."""
        numbers = self.parameter.numbers
        return 0 if numbers is None else numbers.low if self.side == "low" else numbers.high

    def needs_finer_step(self) -> bool:
        """Whether the proposed range does not lie on the grid of the parameter's step."""
        numbers = self.parameter.numbers
        if numbers is None or numbers.step is None or self.proposed is None:
            return False
        steps = (numbers.low - self.proposed[0]) / numbers.step
        return not math.isclose(steps, round(steps), abs_tol=1e-6)


def edges(parameters: tuple[Parameter, ...], options: Mapping[str, OptionValue]) -> list[Edge]:
    """The parameters whose value in `options` lies on a bound of its range, or next to it.

    A special value is on no edge: it lies outside the range.
    """
    on_edge = []
    for parameter in parameters:
        value, numbers = options.get(parameter.name), parameter.numbers
        if numbers is None or isinstance(value, str | bool) or value is None:
            continue
        side = side_of(numbers, value)
        if side is not None:
            specials = [special.value for special in parameter.specials]
            proposed = proposed_range(numbers, side, specials)
            on_edge.append(Edge(parameter, side, value, proposed))
    return on_edge


def side_of(numbers: Range, value: float) -> str | None:
    """`low` or `high` when `value` lies on that bound or within 1 % of the range of it."""
    if not numbers.low <= value <= numbers.high:
        return None
    if value in (numbers.low, numbers.high):
        return "low" if value == numbers.low else "high"
    low, high, at = numbers.low, numbers.high, float(value)
    if numbers.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    place = (at - low) / (high - low)
    if place <= _NEAR:
        return "low"
    return "high" if place >= 1 - _NEAR else None


def proposed_range(
    numbers: Range, side: str, specials: Sequence[float] = ()
) -> tuple[float, float] | None:
    """`numbers` widened on `side`, on the grid of its step, or None where it cannot be.

    A wider range stops before the next of the `specials`, which mean something else.
    """
    if side == "high":
        step = numbers.step or (1 if numbers.integer else 0)
        beyond = numbers.high + max(step, (numbers.high - numbers.low) * _SHARE)
        beyond = numbers.high * _FACTOR if numbers.log else beyond
        first = min((special for special in specials if special > numbers.high), default=None)
        if first is not None and beyond >= first:
            beyond = first - _gap(numbers)
        high = _on_grid(numbers, beyond)
        return (numbers.low, high) if high > numbers.high else None
    if numbers.low == 0:
        return None
    # Sizes and counts stay above zero: beyond it lies another meaning, not a smaller one.
    wider = numbers.low - (numbers.high - numbers.low) * _SHARE
    beyond = numbers.low / _FACTOR if numbers.low > 0 else wider
    last = max((special for special in specials if special < numbers.low), default=None)
    if last is not None and beyond <= last:
        beyond = last + _gap(numbers)
    low = _on_grid(numbers, beyond)
    if low >= numbers.low and numbers.step is not None:
        # A range that begins at its own step has no grid point below; a finer step has.
        low = _on_grid(replace(numbers, step=None), beyond)
    return (low, numbers.high) if low < numbers.low else None


def _gap(numbers: Range) -> float:
    """How far from a special value a range keeps: one step, or a hundredth of its width."""
    return numbers.step or (1 if numbers.integer else _NEAR * (numbers.high - numbers.low))


def _on_grid(numbers: Range, bound: float) -> float:
    """`bound` moved towards the range onto the grid of its step, and onto integers."""
    step = numbers.step or (1 if numbers.integer else 0)
    if not step:
        return bound
    inward = math.ceil if bound < numbers.low else math.floor
    origin = 0 if numbers.log else numbers.low
    moved = origin + inward(round((bound - origin) / step, 9)) * step
    return int(moved) if numbers.integer else moved
