"""What is tried before a model has learned anything: presets, and the optima of cost models."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from lsmtune.engines.ready import known_presets
from lsmtune.model.config import OptionValue
from lsmtune.search.cost_models import (
    Machine,
    amplification_ratios,
    draw_machine,
    kinds_of,
    seconds_of,
)
from lsmtune.search.model_based import neighbours
from lsmtune.search.sampler import Accepts, Problem
from lsmtune.search.unit_space import FloatArray, UnitSpace

# A preset is for a workload of which at least this share is of one of its kinds.
_KIND_SHARE = 0.2


def textbook_starts(
    problem: Problem,
    unit_space: UnitSpace,
    accepts: Accepts,
    origin: Mapping[str, OptionValue] | None,
    seed: int,
    each: int = 2,
) -> list[dict[str, OptionValue]]:
    """What a search begins with: optima of cost models, and presets that suit the workload.

    They take turns, as now the one kind is better, now the other. Of the optima those come first of
    which all models together expect the most; where the write amplification has a guard, the first
    one is followed by the same `at_no_price`. Of each kind there are at most `each`: so few that a
    model of the trials proposes soon. The other arguments are those of `model_optima`.
    """
    presets = [
        point
        for point in preset_starts(problem, unit_space).values()
        if point != origin and not accepts(point)
    ]
    optima = model_optima(problem, unit_space, accepts, origin, seed)
    optima = cheapest_first(problem, unit_space, optima, seed)
    if optima and origin is not None and problem.guard is not None:
        free = at_no_price(problem, unit_space, optima[0], origin, seed)
        if free not in (origin, *optima) and not accepts(free):
            optima.insert(1, free)
    turns = zip_longest(optima[:each], presets[:each])
    return [point for turn in turns for point in turn if point is not None]


def preset_starts(problem: Problem, unit_space: UnitSpace) -> dict[str, dict[str, OptionValue]]:
    """The presets that suit the workloads, by name as points of the space; none twice.

    A parameter that a preset does not set has its default. What lies outside the space is moved to
    the nearest value in it; a choice that the space lacks is left at its default, or else is the
    first one.
    """
    shares: dict[str, float] = {}
    for workload, of_all in problem.shares:
        for kind, share in kinds_of(workload).items():
            shares[kind] = shares.get(kind, 0.0) + of_all * share
    kinds = {kind for kind, share in shares.items() if share >= _KIND_SHARE}
    points: dict[str, dict[str, OptionValue]] = {}
    for preset in known_presets().values():
        suits = preset.engine == problem.engine and kinds.intersection(preset.suits)
        stated = unit_space.space.by_name.keys() & preset.options.keys()
        if suits and stated:
            point = projected(unit_space, preset.options, problem.defaults)
            if point is not None and point not in points.values():
                points[preset.name] = point
    return points


def projected(
    unit_space: UnitSpace,
    options: Mapping[str, OptionValue],
    defaults: Mapping[str, OptionValue],
) -> dict[str, OptionValue] | None:
    """The point nearest to `options`, else `defaults`; None where a parameter has no value."""
    space, values = unit_space.space, dict[str, OptionValue]()
    for parameter in space.evaluation_order:
        if not parameter.is_active(values):
            continue
        wanted = [options.get(parameter.name), defaults.get(parameter.name), parameter.default]
        given = [value for value in wanted if value is not None]
        value = next((parameter.spelled(each) for each in given if parameter.contains(each)), None)
        # A prior's values are not moved.
        numbers = parameter.numbers if parameter.prior is None else None
        first = given[0] if given else None
        is_number = isinstance(first, int | float) and not isinstance(first, bool)
        if numbers is not None and is_number and first != value:
            value = numbers.nearest(float(first or 0))
        if value is None and not parameter.choices:
            return None
        values[parameter.name] = parameter.choices[0] if value is None else value
    return values if space.contains(values) else None


# --- Optima of cost models.

_MODELS, _OPTIMA = 8, 4
# Random points at first; rounds of steps from the best few, and neighbours looked at in each.
_DRAWN, _ROUNDS, _BEAM, _NEAR = 400, 8, 8, 160
# Of each model's points at most so many are asked for whether they may run.
_LOOKED_MAX = 150
# A coordinate goes back to the default where that costs a model less than this share.
_NEGLIGIBLE = 0.005
# Two optima that are nearer than this, as a mean over what differs among them, are one.
_DISTINCT = 0.08
# An optimum has so much of the room of a guard, in logarithms: models err.
_ROOM = 0.5
# Machines that decide the order of the optima.
_ORDERED_BY = 64


def model_optima(
    problem: Problem,
    unit_space: UnitSpace,
    accepts: Accepts,
    origin: Mapping[str, OptionValue] | None,
    seed: int,
) -> list[dict[str, OptionValue]]:
    """At most `_OPTIMA` configurations, each the best by one model, no two of them alike.

    `accepts` returns why a configuration must not run, or an empty text. `origin` is a
    configuration that the optima do not leave without a reason. `seed` decides the machines and all
    else.
    """
    rng = np.random.default_rng(seed)
    space = unit_space.space
    first = None if origin is None else unit_space.encode([space.variables_of(origin)])
    optima: list[FloatArray] = []
    for _ in range(_MODELS):
        machine = draw_machine(rng)

        def cost(points: FloatArray, machine: Machine = machine) -> FloatArray:
            return _costs(problem, unit_space, points, [machine])[:, 0]

        best = _minimum(unit_space, cost, accepts, first, rng)
        if best is None:
            continue
        features = unit_space.distance_features(np.array([*optima, best]))
        # Over what any of them changes: most options of a large space are nobody's concern.
        varied = max(1, int((np.ptp(features, axis=0) > 0).sum()))
        apart = np.abs(features[:-1] - features[-1]).sum(axis=1) / varied
        if not (apart < _DISTINCT).any():
            optima.append(best)
        if len(optima) == _OPTIMA:
            break
    configs = [unit_space.values_at(point) for point in optima]
    if origin is None or first is None:
        return configs
    for point, values in zip(optima, configs, strict=True):
        for parameter in space.parameters:
            places = [unit_space.position[name] for name in parameter.distributions()]
            same = np.array_equal(point[places], first[0][places], equal_nan=True)
            if same and parameter.name in values:
                # Not by way of a coordinate, which is rounded: 10 stays 10.
                values[parameter.name] = origin[parameter.name]
    return configs


def cheapest_first(
    problem: Problem,
    unit_space: UnitSpace,
    points: Sequence[dict[str, OptionValue]],
    seed: int,
) -> list[dict[str, OptionValue]]:
    """`points`, from the cheapest on by the mean over many models."""
    if not points:
        return []
    machines = _machines(seed)
    rows = unit_space.encode([unit_space.space.variables_of(point) for point in points])
    costs = np.log(_costs(problem, unit_space, rows, machines)).mean(axis=1)
    return [points[index] for index in np.argsort(costs, kind="stable")]


def _machines(seed: int) -> list[Machine]:
    """Those that decide together what is cheaper, or writes less."""
    rng = np.random.default_rng(seed)
    return [draw_machine(rng) for _ in range(_ORDERED_BY)]


# A value goes back to the baseline's where that lowers the write amplification by this share.
_PRICE = 0.02


def at_no_price(
    problem: Problem,
    unit_space: UnitSpace,
    point: Mapping[str, OptionValue],
    origin: Mapping[str, OptionValue],
    seed: int,
) -> dict[str, OptionValue]:
    """`point` with the values of `origin` wherever those write less; `point` if it has no price.

    A filter and a codec cost no write amplification, a smaller memtable does. Models err on how
    much, and a guard may be nearer than they think: then half of a gain is worth more than all.
    """
    machines, space = _machines(seed), unit_space.space

    def written(points: Sequence[Mapping[str, OptionValue]]) -> FloatArray:
        rows = unit_space.encode([space.variables_of(each) for each in points])
        ratios: FloatArray = amplification_ratios(problem, unit_space, rows, machines).mean(axis=1)
        return ratios

    free = dict(point)
    for name in sorted(free.keys() & origin.keys()):
        back = {**free, name: origin[name]}
        if back != free and space.contains(back):
            with_it, without = written([free, back])
            if without < (1.0 - _PRICE) * with_it:
                free = back
    return free


def _costs(
    problem: Problem, unit_space: UnitSpace, points: FloatArray, machines: Sequence[Machine]
) -> FloatArray:
    """As `seconds_of`, and more where the guard of the write amplification would break."""
    seconds = seconds_of(problem, unit_space, points, machines)
    if problem.guard is None:
        return seconds
    ratios = amplification_ratios(problem, unit_space, points, machines)
    most = problem.guard.most**_ROOM
    dearer: FloatArray = 1.0 + 10.0 * np.maximum(ratios / most - 1.0, 0.0)
    return seconds * dearer


def _minimum(
    unit_space: UnitSpace,
    cost: Callable[[FloatArray], FloatArray],
    accepts: Accepts,
    origin: FloatArray | None,
    rng: np.random.Generator,
) -> FloatArray | None:
    """The cheapest accepted point, by random draws and steps from the best of them."""
    points = unit_space.sample(rng, _DRAWN)
    if origin is not None:
        points = np.vstack([origin, points])
    best: list[tuple[float, FloatArray]] = []
    looked = 0
    for _ in range(_ROUNDS + 1):
        costs, taken = cost(points), 0
        for index in np.argsort(costs, kind="stable"):
            # Once the beam is full, a round adds its cheapest point alone: with all that are
            # cheaper, optima are 0.4 % cheaper at most, and four times as many are asked for.
            limit = best[-1][0] if len(best) >= _BEAM else math.inf
            if costs[index] >= limit or taken >= _BEAM:
                break
            looked += 1
            if looked > _LOOKED_MAX:
                break
            if not accepts(unit_space.values_at(points[index])):
                best.append((float(costs[index]), points[index]))
                taken += 1
        best = sorted(best, key=lambda each: each[0])[:_BEAM]
        if not best:
            return None
        starts = np.array([point for _, point in best])
        points = neighbours(unit_space, rng, starts, _NEAR // len(starts))
    point = best[0][1]
    return point if origin is None else _reverted(unit_space, cost, accepts, point, origin[0])


def _reverted(
    unit_space: UnitSpace,
    cost: Callable[[FloatArray], FloatArray],
    accepts: Accepts,
    point: FloatArray,
    origin: FloatArray,
) -> FloatArray:
    """`point` with the coordinates of `origin` that a model does not mind."""

    def with_origin(point: FloatArray, places: npt.NDArray[np.intp]) -> FloatArray:
        back = point.copy()
        back[places] = origin[places]
        completed: FloatArray = unit_space.complete(np.where(np.isnan(back), 0.5, back)[None])[0]
        return completed

    differs = ~np.isnan(point) & ~np.isnan(origin) & (point != origin)
    places = np.flatnonzero(differs)
    if not len(places):
        return point
    # First those together of which it says nothing, in halves where they cannot all go back at once
    # (conditions and constraints), then the others one by one.
    before = float(cost(point[np.newaxis])[0])
    alone = cost(np.array([with_origin(point, places[[k]]) for k in range(len(places))]))
    idle = np.abs(alone / before - 1) < 1e-12
    groups = [places[idle], *places[~idle].reshape(-1, 1)]
    while groups:
        some, *groups = groups
        if not len(some):
            continue
        back = with_origin(point, some)
        after = float(cost(back[np.newaxis])[0])
        if after <= before * (1 + _NEGLIGIBLE) and not accepts(unit_space.values_at(back)):
            point, before = back, after
        elif len(some) > 1:
            groups = [some[: len(some) // 2], some[len(some) // 2 :], *groups]
    return point
