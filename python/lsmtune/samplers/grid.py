"""`grid`: every combination of a few values for each parameter, in an order shuffled by the seed.

Each choice and each special value is a value of the grid. A range gives `points` values from its
low to its high, even on its own scale: logarithmic, or by quantiles where it has a prior. A
parameter takes part where its conditions hold, and nowhere else. The grid is never listed, so it
may be as large as it likes; in the shuffled order its beginning is a fair sample of all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler

from lsmtune.errors import InputError, nearest_name
from lsmtune.records.config import OptionValue, option_text
from lsmtune.records.setting import Setting, whole_number
from lsmtune.samplers.draw import Asker
from lsmtune.samplers.exhausted import SpaceExhaustedError
from lsmtune.samplers.kind import SamplerContext, SamplerKind
from lsmtune.samplers.permutation import Permutation
from lsmtune.samplers.plan import PlanSampler
from lsmtune.samplers.table import ConfigTable
from lsmtune.space import Parameter
from lsmtune.units import option_value

_POINTS_MAX = 10_000
_ENTRY_ALLOWED = f"for a parameter, a whole number from 1 to {_POINTS_MAX} or a list of its values"
_Entry = int | tuple[OptionValue, ...]
_read_points = whole_number(1, _POINTS_MAX)


class GridSampler(PlanSampler):
    """The configurations of a `ConfigTable` in the order of a `Permutation`."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context.space)
        self._space = context.space
        entries = _entries(context)
        default = context.get.whole("points")
        self._table = ConfigTable(
            context.space,
            {
                p.name: _grid_values(p, entries.get(p.name, default))
                for p in context.space.parameters
            },
        )
        self._order = Permutation(self._table.size, context.seed)

    def variables_at(self, place: int) -> dict[str, Any]:
        """The variables of the grid's configuration at `place` of the shuffled order."""
        if place >= self._table.size:
            raise SpaceExhaustedError(f"each of the {self._table.size} configurations of the grid")
        return self._space.variables_of(self._table.at(self._order.at(place)))


def _grid_values(parameter: Parameter, entry: _Entry) -> Sequence[OptionValue]:
    if not isinstance(entry, int):
        return entry
    if parameter.numbers is None:
        return parameter.choices
    specials = [special.value for special in parameter.specials]
    return [*specials, *_range_values(parameter, entry)]


def _range_values(parameter: Parameter, points: int) -> list[OptionValue]:
    """Up to `points` different values of the range; from a single one, its middle."""
    distributions = parameter.distributions()
    variables = _spread(distributions[parameter.variable], points)
    values = [_range_value(parameter, distributions, variable) for variable in variables]
    return list({option_text(value): value for value in values}.values())


def _spread(distribution: BaseDistribution, points: int) -> list[float]:
    """Variables from low to high, evenly on the variable's scale, each on its steps."""
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise TypeError(f"not a range: {distribution}")
    low, high, step = distribution.low, distribution.high, distribution.step
    shares = np.linspace(0.0, 1.0, points) if points > 1 else np.array([0.5])
    spread = low * (high / low) ** shares if distribution.log else low + shares * (high - low)
    if step is not None:
        spread = low + np.rint((spread - low) / step) * step
    return [min(max(float(variable), low), high) for variable in spread]  # rounding errors only


def _range_value(
    parameter: Parameter, distributions: Mapping[str, BaseDistribution], variable: object
) -> OptionValue:
    """What the parameter's own variable stands for, when its selector (at 1) picks the range."""
    taken = {parameter.variable: variable, parameter.selector: 1.0}

    def ask(name: str, distribution: BaseDistribution) -> Any:
        del distribution
        return taken[name]

    return parameter.suggest(Asker(distributions, ask).as_trial())


def _read_entries(value: object) -> Mapping[str, _Entry]:
    if not isinstance(value, Mapping):
        raise ValueError
    return {str(name): _read_entry(str(name), entry) for name, entry in value.items()}


def _read_entry(name: str, entry: object) -> _Entry:
    if isinstance(entry, list | tuple):
        if not entry or not all(isinstance(value, str | int | float | bool) for value in entry):
            raise ValueError(f"{name} needs at least one value that an option can have")
        values = [option_value(value) for value in entry]
        if len({option_text(value) for value in values}) < len(values):
            raise ValueError(f"{name} has the same value twice")
        return tuple(values)
    try:
        return cast(int, _read_points(entry))
    except ValueError as error:
        raise ValueError(f"{name} is neither a number of points nor a list of values") from error


def _entries(context: SamplerContext) -> Mapping[str, _Entry]:
    return cast(Mapping[str, _Entry], context.settings["parameters"])


def _check(context: SamplerContext, source: str, field: str) -> None:
    by_name = {parameter.name: parameter for parameter in context.space.parameters}
    for name, entry in _entries(context).items():
        place = f"{field}.parameters.{name}"
        if name not in by_name:
            raise InputError(
                source,
                place,
                why="no such parameter in space",
                allowed=", ".join(by_name),
                nearest=nearest_name(name, by_name),
            )
        parameter = by_name[name]
        if isinstance(entry, int):
            if parameter.numbers is None:
                why = "is a choice: all its values are on the grid"
                raise InputError(source, place, why=why, found=entry, allowed="a list of choices")
            continue
        for index, value in enumerate(entry):
            if not parameter.contains(value):
                allowed = parameter.describe()
                raise InputError(source, f"{place}[{index}]", found=value, allowed=allowed)


def _make(context: SamplerContext) -> BaseSampler:
    return GridSampler(context)


KIND = SamplerKind(
    name="grid",
    summary="every combination of a few values for each parameter, in shuffled order",
    settings=(
        Setting(
            "points",
            5,
            "values of each numeric parameter, both ends included; special values come on top",
            f"a whole number from 1 to {_POINTS_MAX}",
            _read_points,
        ),
        Setting(
            "parameters",
            {},
            "the same for single parameters, or the values themselves",
            f"a mapping; {_ENTRY_ALLOWED}",
            _read_entries,
        ),
    ),
    several_objectives=True,
    make=_make,
    learns=False,
    listed=True,
    check=_check,
)
