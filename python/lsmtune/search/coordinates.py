"""Points as `auto` sees them: coordinates and costs of a tree, and which databases are loaded."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy

from lsmtune.search.cost_models import amplification_ratios, draw_machine, seconds_of, unitless
from lsmtune.search.history import History
from lsmtune.search.sampler import SamplerContext, generator_of_trial
from lsmtune.search.unit_space import FloatArray, UnitSpace

_MACHINES = 24
# Of the recorded landscapes `writing` and `mixed`, docs/benchmarks/README.md.
_RATIO_SD = 0.4
# A load counts as at most so many times the rest of a trial, in logarithms.
_LOAD_MAX = math.log(8.0)


class Coordinates:
    """Points as the process sees them."""

    def __init__(self, unit_space: UnitSpace, context: SamplerContext) -> None:
        self._unit_space = unit_space
        self._problem = context.problem
        self._places: dict[str, int] = {}
        self._ranges: dict[str, tuple[float, float]] = {}  # low and width of what `_raw` has
        if context.problem is None:
            return
        rng = generator_of_trial(context.seed, 0)
        self._machines = [draw_machine(rng) for _ in range(_MACHINES)]
        place = 0
        variables = {p.variable: p.name for p in context.space.parameters}
        for dimension in unit_space.dimensions:
            if dimension.ordered and dimension.name in variables:
                self._places[variables[dimension.name]] = place
            place += 1 if dimension.ordered else dimension.scale.cells
        sample = unit_space.sample(rng, 256)
        for name, values in self._raw(sample, self._costs(sample)).items():
            low, high = np.percentile(values, [2, 98])
            self._ranges[name] = float(low), float(high - low) or 1.0

    def of(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Features (n, f) of `points` (n, dimensions), and the logarithms of their costs (n, m)."""
        features: FloatArray = self._unit_space.distance_features(points)
        costs, further = self._costs(points), []
        for name, values in self._raw(points, costs).items():
            low, width = self._ranges[name]
            scaled = (values - low) / width
            if name in self._places:
                features[:, self._places[name]] = scaled
            else:
                further.append(scaled)
        return (np.column_stack([features, *further]) if further else features), costs

    def log_chance(self, points: FloatArray) -> FloatArray:
        """The logarithm of the chance that the guard of the write amplification holds, (n,).

        By the cost models alone, for as long as no trial tells: the errors of their ratios are
        about normal, with a standard deviation of `_RATIO_SD` in logarithms.
        """
        problem = self._problem
        if problem is None or problem.guard is None:
            return np.zeros(len(points))
        ratios = amplification_ratios(problem, self._unit_space, points, self._machines)
        room = (math.log(problem.guard.most) - np.log(np.maximum(ratios, 1e-9))) / _RATIO_SD
        chances: FloatArray = np.log(np.maximum(scipy.special.ndtr(room).mean(axis=1), 1e-3))
        return chances

    def _costs(self, points: FloatArray) -> FloatArray:
        if self._problem is None:
            return np.empty((len(points), 0))
        return np.log(seconds_of(self._problem, self._unit_space, points, self._machines))

    def _raw(self, points: FloatArray, costs: FloatArray) -> dict[str, FloatArray]:
        """Option to its coordinate without units, and what the cost models say."""
        if self._problem is None:
            return {}
        said = {"<mean cost>": costs.mean(axis=1), "<spread of costs>": costs.std(axis=1)}
        return {**unitless(self._problem, self._unit_space, points), **said}


class Layouts:
    """Which points start from a database that is loaded already."""

    def __init__(self, unit_space: UnitSpace, context: SamplerContext) -> None:
        self._unit_space = unit_space
        names = frozenset[str]() if context.problem is None else context.problem.layout
        of_layout = [p.distributions() for p in context.space.parameters if p.name in names]
        variables = set().union(*of_layout)
        self._in_layout = np.array([d.name in variables for d in unit_space.dimensions])
        # Where everything or nothing is layout, no two trials differ in this.
        self._matters = bool(self._in_layout.any() and not self._in_layout.all())

    def settings_of(
        self, points: FloatArray, rng: np.random.Generator, count: int
    ) -> list[FloatArray]:
        """`count` random points (count, dimensions) with the layouts of `points`; none without."""
        if not self._matters or not len(points):
            return []
        drawn, full = self._unit_space.sample(rng, count), rng.random((count, len(self._in_layout)))
        like = points[rng.integers(len(points), size=count)]
        drawn = np.where(np.isnan(drawn), full, drawn)
        like = np.where(np.isnan(like), full, like)
        return [self._unit_space.complete(np.where(self._in_layout, like, drawn))]

    def loads(self, history: History) -> Callable[[FloatArray], FloatArray]:
        """By what factor trials at points (n, dimensions) take longer for a load, a logarithm (n,).

        0 where another trial has loaded the layout, or loads it; else the median of loads so far.
        """
        if not self._matters:
            return lambda points: np.zeros(len(points))
        keys = [row.tobytes() for row in history.points[:, self._in_layout]]
        loaded, longer = set[bytes](), []
        for key, ratio in zip(keys, (history.seconds / history.run_seconds).tolist(), strict=True):
            if key not in loaded and math.isfinite(ratio):
                longer.append(math.log(max(1.0, ratio)))
            loaded.add(key)
        loaded |= {row.tobytes() for row in history.running[:, self._in_layout]}
        extra = min(float(np.median(longer)), _LOAD_MAX) if longer else 0.0

        def loads_of(points: FloatArray) -> FloatArray:
            is_new = [row.tobytes() not in loaded for row in points[:, self._in_layout]]
            return np.where(is_new, extra, 0.0)

        return loads_of
