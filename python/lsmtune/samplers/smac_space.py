"""The cube of a space as a ConfigSpace, and its points as configurations of that.

| column | hyperparameter |
|---|---|
| float without a step | float, with its log scale |
| integer on a log scale | integer on a log scale |
| any other ordered variable | integer: the index of its cell |
| categorical, selector | categorical: the index of its cell, weighted |

Conditions are carried over, so that SMAC's forest sees which variables are inactive. Two kinds have
no form in ConfigSpace: a parent that may have a special value *or* a number, and one that is a
float without a step. The child is then always active to SMAC, and ignored when it is not. Imports
the optional packages of the extra `smac`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

from lsmtune.samplers.column import Column, Continuum, FloatArray, LogCells, Shares
from lsmtune.samplers.cube import Cube
from lsmtune.space import Condition, Parameter


class SmacSpace:
    """A ConfigSpace of its own for `cube`; hyperparameter `v3` is column 3."""

    def __init__(self, cube: Cube) -> None:
        self._cube = cube
        self.configspace = ConfigurationSpace()
        self._hyperparameters = {
            index: _hyperparameter(f"v{index}", column)
            for index, column in enumerate(cube.columns)
            if column.scale.cells != 1
        }
        self.configspace.add(*self._hyperparameters.values())
        for parameter in cube.space.evaluation_order:
            self._add_conditions(parameter)

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
        coordinates = np.full((1, self._cube.dimensions), 0.5)
        for index, hyperparameter in self._hyperparameters.items():
            value = configuration.get(hyperparameter.name)
            if value is not None:
                coordinates[0, index] = self._coordinate(index, float(value))
        point: FloatArray = self._cube.complete(coordinates)[0]
        return point

    def _value(self, index: int, coordinate: float) -> int | float:
        column = self._cube.columns[index]
        internal = float(column.scale.from_unit(np.array([coordinate]))[0])
        if isinstance(column.scale, Continuum):
            return internal
        if isinstance(column.scale, LogCells):
            return round(internal)
        return int(np.argmin(np.abs(column.coordinates() - coordinate)))

    def _coordinate(self, index: int, value: float) -> float:
        column = self._cube.columns[index]
        if isinstance(column.scale, Continuum | LogCells):
            return float(column.scale.to_unit(np.array([value]))[0])
        return float(column.coordinates()[int(value)])

    def _add_conditions(self, parameter: Parameter) -> None:
        position = self._cube.position
        own, selector = position[parameter.variable], None
        shared = [
            found
            for condition in parameter.conditions
            if (found := self._one_of(condition)) is not None
        ]
        if parameter.selector is not None:
            selector = position[parameter.selector]
            self._add(selector, shared)
            shared = [*shared, (selector, [len(parameter.specials)])]
        self._add(own, shared)

    def _one_of(self, condition: Condition) -> tuple[int, list[int | float]] | None:
        """The column that decides on a condition and the values that it may have, if one does."""
        parent = self._cube.space[condition.name]
        variables = [parent.variables_of(value) for value in condition.values]
        special = [parent.variable not in values for values in variables]
        if any(special) and not all(special):
            return None
        name = parent.selector if all(special) and parent.selector else parent.variable
        index = self._cube.position[name]
        column = self._cube.columns[index]
        if isinstance(column.scale, Continuum):
            return None
        units = column.scale.to_unit(np.array([column.internal(v[name]) for v in variables]))
        return index, [self._value(index, float(unit)) for unit in units]

    def _add(self, child: int, parents: Sequence[tuple[int, list[int | float]]]) -> None:
        if child not in self._hyperparameters:
            return
        conditions = [
            _condition(self._hyperparameters[child], self._hyperparameters[parent], values)
            for parent, values in parents
            if parent in self._hyperparameters
        ]
        if len(conditions) > 1:
            self.configspace.add(AndConjunction(*conditions))
        elif conditions:
            self.configspace.add(conditions[0])


def _condition(child: Any, parent: Any, values: list[int | float]) -> Any:
    if len(values) == 1:
        return EqualsCondition(child, parent, values[0])
    return InCondition(child, parent, values)


def _hyperparameter(name: str, column: Column) -> Any:
    scale = column.scale
    if isinstance(scale, Continuum):
        return UniformFloatHyperparameter(name, scale.low, scale.high, log=scale.log)
    if isinstance(scale, LogCells):
        return UniformIntegerHyperparameter(name, scale.low, scale.high, log=True)
    if column.ordered:
        return UniformIntegerHyperparameter(name, 0, scale.cells - 1)
    weights = np.diff((0.0, *scale.ends)).tolist() if isinstance(scale, Shares) else None
    return CategoricalHyperparameter(name, list(range(scale.cells)), weights=weights)
