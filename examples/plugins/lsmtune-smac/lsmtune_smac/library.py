"""SMAC's library in lsmtune's terms: a space as a ConfigSpace, and what one epoch proposes.

SMAC 2.4's hyperparameter-optimization facade with its defaults: a random forest of 10 trees over
log-scaled costs, log expected improvement, local search from the best of thousands of random
configurations, one random configuration in five. Its intensifier, which repeats good
configurations, is passed over: a trial here is a new configuration, and repeats are the proof's.

| variable | hyperparameter |
|---|---|
| float without a step | float, with its log scale |
| integer on a log scale | integer on a log scale |
| any other ordered variable | integer: the index of its cell |
| categorical, selector | categorical: the index of its cell, weighted |

Conditions are carried over, so that SMAC's forest sees which variables are inactive. Two kinds have
no form in ConfigSpace: a parent that may have a special value *or* a number, and one that is a
float without a step. The child is then always active to SMAC, and ignored when it is not.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    InCondition,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.util import deactivate_inactive_hyperparameters
from smac import HyperparameterOptimizationFacade, Scenario
from smac.acquisition.maximizer import LocalAndSortedRandomSearch, LocalSearch
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import StatusType, TrialInfo

from lsmtune.search.model_based import History
from lsmtune.search.unit_space import Dimension, FloatArray, NumberScale, Shares, UnitSpace
from lsmtune.space.parameter import Condition


class SmacSpace:
    """A ConfigSpace of its own for `unit_space`; hyperparameter `v3` is dimension 3."""

    def __init__(self, unit_space: UnitSpace) -> None:
        self._unit_space = unit_space
        self.configspace = ConfigurationSpace()
        self._hyperparameters = {
            index: _hyperparameter(f"v{index}", dimension)
            for index, dimension in enumerate(unit_space.dimensions)
            if dimension.scale.cells != 1
        }
        self.configspace.add(*self._hyperparameters.values())
        position = unit_space.position
        for parameter in unit_space.space.evaluation_order:
            parents = [self._one_of(condition) for condition in parameter.conditions]
            shared = [parent for parent in parents if parent is not None]
            if parameter.selector is not None:
                selector = position[parameter.selector]
                self._add(selector, shared)
                shared = [*shared, (selector, [len(parameter.specials)])]
            self._add(position[parameter.variable], shared)

    def configuration(self, point: FloatArray) -> Configuration:
        """The configuration of a point (dimensions,)."""
        values = {
            hyperparameter.name: hyperparameter.default_value
            if np.isnan(point[index])
            else self._value(index, float(point[index]))
            for index, hyperparameter in self._hyperparameters.items()
        }
        return deactivate_inactive_hyperparameters(values, self.configspace)

    def point(self, configuration: Configuration) -> FloatArray:
        """The point (dimensions,) of a configuration."""
        coordinates = np.full((1, self._unit_space.dimension_count), 0.5)
        for index, hyperparameter in self._hyperparameters.items():
            value = configuration.get(hyperparameter.name)
            if value is None:
                continue
            dimension = self._unit_space.dimensions[index]
            if _is_itself(dimension):
                coordinates[0, index] = dimension.scale.to_unit(np.array([float(value)]))[0]
            else:
                coordinates[0, index] = dimension.coordinates()[int(value)]
        point: FloatArray = self._unit_space.complete(coordinates)[0]
        return point

    def _value(self, index: int, coordinate: float) -> int | float:
        dimension = self._unit_space.dimensions[index]
        if not _is_itself(dimension):
            return int(np.argmin(np.abs(dimension.coordinates() - coordinate)))
        internal = float(dimension.scale.from_unit(np.array([coordinate]))[0])
        return round(internal) if dimension.scale.cells else internal

    def _one_of(self, condition: Condition) -> tuple[int, list[int | float]] | None:
        """The dimension that decides on a condition, and the values that it may have; or None."""
        parent = self._unit_space.space[condition.name]
        variables = [parent.variables_of(value) for value in condition.values]
        special = [parent.variable not in values for values in variables]
        if any(special) and not all(special):
            return None
        name = parent.selector if all(special) and parent.selector else parent.variable
        index = self._unit_space.position[name]
        dimension = self._unit_space.dimensions[index]
        if dimension.scale.cells == 0:
            return None
        units = dimension.scale.to_unit(np.array([dimension.internal(v[name]) for v in variables]))
        return index, [self._value(index, float(unit)) for unit in units]

    def _add(self, child: int, parents: Sequence[tuple[int, list[int | float]]]) -> None:
        """Lets `child` be active while each of `parents` has one of its values."""
        known = self._hyperparameters
        if child not in known:
            return
        conditions = [
            EqualsCondition(known[child], known[parent], values[0])
            if len(values) == 1
            else InCondition(known[child], known[parent], values)
            for parent, values in parents
            if parent in known
        ]
        if conditions:
            self.configspace.add(
                AndConjunction(*conditions) if len(conditions) > 1 else conditions[0]
            )


def _is_itself(dimension: Dimension) -> bool:
    """Whether SMAC has the number itself, and not the index of its cell."""
    scale = dimension.scale
    return isinstance(scale, NumberScale) and (scale.log or scale.step is None)


def _hyperparameter(name: str, dimension: Dimension) -> Any:
    scale = dimension.scale
    if isinstance(scale, NumberScale) and scale.step is None:
        return UniformFloatHyperparameter(name, scale.low, scale.high, log=scale.log)
    if isinstance(scale, NumberScale) and scale.log:
        return UniformIntegerHyperparameter(name, scale.low, scale.high, log=True)
    if dimension.ordered:
        return UniformIntegerHyperparameter(name, 0, scale.cells - 1)
    weights = np.diff((0.0, *scale.ends)).tolist() if isinstance(scale, Shares) else None
    return CategoricalHyperparameter(name, list(range(scale.cells)), weights=weights)


# --- one epoch

# Larger than any study: SMAC cuts its initial design to a quarter of the trials that it expects.
TRIALS_MAX = 10**6


def design(unit_space: UnitSpace, count: int, seed: int) -> list[FloatArray]:
    """The points of SMAC's initial design, a scrambled Sobol sequence; at most `count`."""
    space = SmacSpace(unit_space)
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        scenario = _scenario(space, folder, seed)
        chosen = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=count)
        return [space.point(configuration) for configuration in chosen.select_configurations()]


def proposals(
    unit_space: UnitSpace, history: History, seed: int, *, challengers: int, local_searches: int
) -> Iterator[FloatArray]:
    """New points for `history`, the best first, until the space is exhausted.

    The best of `challengers` random configurations and of `local_searches` local ones.
    """
    space = SmacSpace(unit_space)
    make = HyperparameterOptimizationFacade
    # SMAC writes its scenario when it is made, and nothing later as long as nothing is told to it.
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        scenario = _scenario(space, folder, seed)
        maximizer = _Maximizer(
            space.configspace,
            challengers=challengers,
            local_search_iterations=local_searches,
            seed=seed,
        )
        facade = make(
            scenario,
            initial_design=make.get_initial_design(scenario, n_configs=0),
            acquisition_maximizer=maximizer,
            logging_level=False,
            overwrite=True,
        )
    for point, target in zip(history.points, history.targets, strict=True):
        # Targets already say what failed and what was pruned: to SMAC, all of them succeeded.
        facade.runhistory.add(
            space.configuration(point), cost=float(target), status=StatusType.SUCCESS, seed=0
        )
    for point in history.running:
        facade.runhistory.add_running_trial(TrialInfo(space.configuration(point), seed=0))
    configurations = facade.intensifier.config_generator
    while True:
        # Its forest would start threads for ten trees and wait for them 10 ms at a time.
        with _quiet(), joblib.parallel_config(backend="sequential"):
            try:
                configuration = next(configurations)
            except ConfigurationSpaceExhaustedException:
                return
        yield space.point(configuration)


class _LocalSearch(LocalSearch):  # type: ignore[misc]
    """SMAC's, which takes its starting points in the order of a set of configurations.

    That order follows from the hashes of texts, and those differ from process to process.
    """

    def _get_init_points_from_previous_configs(self, *arguments: Any) -> list[Configuration]:
        points = super()._get_init_points_from_previous_configs(*arguments)
        return sorted(points, key=lambda configuration: configuration.get_array().tobytes())


class _Maximizer(LocalAndSortedRandomSearch):  # type: ignore[misc]
    """SMAC's default, with the local search above."""

    def __init__(self, configspace: ConfigurationSpace, **settings: Any) -> None:
        super().__init__(configspace, **settings)
        self._local_search = _LocalSearch(configspace, seed=settings["seed"])


def _scenario(space: SmacSpace, folder: str, seed: int) -> Scenario:
    return Scenario(
        space.configspace,
        name="lsmtune",
        output_directory=Path(folder),
        deterministic=True,
        n_trials=TRIALS_MAX,
        seed=seed,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep SMAC's remarks on its own workings out of the terminal."""
    logger = logging.getLogger("smac")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
