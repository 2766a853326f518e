"""`grid`: every combination of a few values for each parameter, in an order shuffled by the seed.

Each choice and each special value is a value of the grid. A range gives `points` values from its
low to its high, even on its own scale: logarithmic, or by quantiles where it has a prior. A
parameter takes part where its conditions hold, and nowhere else. The grid is never listed, so it
may be as large as it likes; in the shuffled order its beginning is a fair sample of all of it.

A ConfigTable numbers the configurations. Conditions make a tree of the plain product: a parameter
that is not active has no value. How many configurations hang below a node depends only on which
later parameters are already known to be inactive, so the numbers are counted once per such set, and
the configuration of a number is found by walking down. A table of 10**30 configurations costs no
more than one of ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from optuna.distributions import FloatDistribution, IntDistribution

from lsmtune.errors import InputError, check_names
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.setting import Setting, whole_setting
from lsmtune.search.plans import NO_SUCH_PARAMETER, PlanSampler
from lsmtune.search.sampler import SamplerContext, SamplerKind, SpaceExhaustedError
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space
from lsmtune.units import option_value

_Off = frozenset[str]  # later parameters that are known to be inactive
_Entry = int | tuple[OptionValue, ...]
_Entries = Mapping[str, _Entry]
_POINTS_MAX = 10_000
_ENTRY_ALLOWED = f"for a parameter, a whole number from 1 to {_POINTS_MAX} or a list of its values"
_FEISTEL_ROUNDS = 6


# --- all configurations of some values for each parameter, numbered


class ConfigTable:
    """The configurations of `space` in which each parameter has one of its `values`.

    `values` maps every parameter's name to at least one value, none twice; a `range` will do.
    """

    def __init__(self, space: Space, values: Mapping[str, Sequence[OptionValue]]) -> None:
        self._order = space.evaluation_order
        self._dependents = {
            parameter.name: [
                (later.name, condition)
                for later in self._order
                for condition in later.conditions
                if condition.name == parameter.name
            ]
            for parameter in self._order
        }
        self._branches = {p.name: self._branches_of(p, values[p.name]) for p in self._order}
        self._counts: dict[tuple[int, _Off], int] = {}
        self.size: int = self._count(0, frozenset())

    def at(self, index: int) -> dict[str, OptionValue]:
        """The configuration of number `index`, from 0 to `size` - 1."""
        if not 0 <= index < self.size:
            raise IndexError(index)
        config: dict[str, OptionValue] = {}
        off: _Off = frozenset()
        for position, parameter in enumerate(self._order):
            if parameter.name in off:
                off = self._after_inactive(parameter, off)
                continue
            for more_off, values in self._branches[parameter.name].items():
                below = self._count(position + 1, off | more_off)
                if index < len(values) * below:
                    which, index = divmod(index, below)
                    config[parameter.name] = values[which]
                    off |= more_off
                    break
                index -= len(values) * below
        return config

    def _branches_of(
        self, parameter: Parameter, values: Sequence[OptionValue]
    ) -> Mapping[_Off, Sequence[OptionValue]]:
        """The values of a parameter by the later parameters that are off after them."""
        groups: dict[_Off, list[OptionValue]] = {}
        dependents = self._dependents[parameter.name]
        if not dependents:
            return {frozenset(): values}
        for value in values:
            known = {parameter.name: value}
            off = frozenset(name for name, condition in dependents if not condition.holds(known))
            groups.setdefault(off, []).append(value)
        return groups

    def _after_inactive(self, parameter: Parameter, off: _Off) -> _Off:
        return off | {name for name, _ in self._dependents[parameter.name]}

    def _count(self, position: int, off: _Off) -> int:
        """Configurations of the parameters from `position` on; those in `off` are inactive."""
        if position == len(self._order):
            return 1
        off &= frozenset(parameter.name for parameter in self._order[position:])
        if (position, off) not in self._counts:
            parameter = self._order[position]
            if parameter.name in off:
                count = self._count(position + 1, self._after_inactive(parameter, off))
            else:
                count = sum(
                    len(values) * self._count(position + 1, off | more_off)
                    for more_off, values in self._branches[parameter.name].items()
                )
            self._counts[position, off] = count
        return self._counts[position, off]


def every_value(parameter: Parameter, limit: int) -> Sequence[OptionValue] | None:
    """All values of `parameter`, or None when there are more than `limit` (or no end of them)."""
    if parameter.numbers is None:
        return parameter.choices if len(parameter.choices) <= limit else None
    in_range = parameter.numbers.listed(limit)
    if in_range is None:
        return None
    # A prior can leave numbers at its ends so improbable that no draw reaches them.
    return [
        *(special.value for special in parameter.specials),
        *(number for number in in_range if parameter.contains(number)),
    ]


def whole_table(space: Space, limit: int) -> ConfigTable | None:
    """The table of every configuration of `space`, or None when there are more than `limit`."""
    values: dict[str, Sequence[OptionValue]] = {}
    for parameter in space.parameters:
        listed = every_value(parameter, limit)
        if listed is None:
            return None
        values[parameter.name] = listed
    table = ConfigTable(space, values)
    return table if table.size <= limit else None


# --- a seeded order of a huge range of integers, without a list


class Permutation:
    """The integers from 0 to `size` - 1 in an order that follows from `seed`.

    A Feistel network over the next even number of bits; what falls outside the range is sent
    through it again until it falls inside ("cycle walking", J. Black and P. Rogaway, "Ciphers with
    arbitrary finite domains", CT-RSA 2002). At most three in four are outside, so it ends soon.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._half_bits = max(1, -(-max(1, (size - 1).bit_length()) // 2))
        self._mask = (1 << self._half_bits) - 1
        self._seed = str(seed).encode()

    def at(self, index: int) -> int:
        """The integer at place `index`; both from 0 to `size` - 1."""
        if not 0 <= index < self._size:
            raise IndexError(index)
        value = self._once(index)
        while value >= self._size:
            value = self._once(value)
        return value

    def _once(self, value: int) -> int:
        left, right = value >> self._half_bits, value & self._mask
        for number in range(_FEISTEL_ROUNDS):
            digest = blake2b(b"%s:%d:%d" % (self._seed, number, right), digest_size=32).digest()
            left, right = right, left ^ (int.from_bytes(digest, "big") & self._mask)
        return left << self._half_bits | right


# --- the sampler

_POINTS = whole_setting(
    "points",
    5,
    "values of each numeric parameter, both ends included; special values come on top",
    1,
    _POINTS_MAX,
)


class GridSampler(PlanSampler):
    """The configurations of a `ConfigTable` in the order of a `Permutation`."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        entries = cast(_Entries, context.settings["parameters"])
        default: int = context.settings["points"]
        self._table = ConfigTable(
            context.space,
            {
                p.name: _grid_values(p, entries.get(p.name, default))
                for p in context.space.parameters
            },
        )
        self._order = Permutation(self._table.size, context.seed)

    def variables_at(self, index: int) -> dict[str, Any]:
        """The variables of the grid's configuration `index` of the shuffled order."""
        if index >= self._table.size:
            raise SpaceExhaustedError(f"each of the {self._table.size} configurations of the grid")
        return self.space.variables_of(self._table.at(self._order.at(index)))


def _grid_values(parameter: Parameter, entry: _Entry) -> Sequence[OptionValue]:
    """The values of `entry`, or so many different ones of the range; a single one is its middle."""
    if not isinstance(entry, int):
        return entry
    if parameter.numbers is None:
        return parameter.choices
    distribution = parameter.distributions()[parameter.variable]
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise TypeError(f"not a range: {distribution}")
    # From low to high, evenly on the variable's scale, each on its steps.
    low, high, step = distribution.low, distribution.high, distribution.step
    shares = np.linspace(0.0, 1.0, entry) if entry > 1 else np.array([0.5])
    spread = low * (high / low) ** shares if distribution.log else low + shares * (high - low)
    if step is not None:
        spread = low + np.rint((spread - low) / step) * step

    whole = isinstance(distribution, IntDistribution)
    drawn = np.clip(spread, low, high).tolist()  # clips rounding errors only
    values = [parameter.value_of(int(each) if whole else each) for each in drawn]
    different = {option_text(value): value for value in values}
    return [*(special.value for special in parameter.specials), *different.values()]


def _read_entries(value: object) -> _Entries:
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
        return cast(int, _POINTS.read(entry))
    except ValueError as error:
        raise ValueError(f"{name} is neither a number of points nor a list of values") from error


def _check(context: SamplerContext, source: str, field: str) -> None:
    by_name = {parameter.name: parameter for parameter in context.space.parameters}
    entries = cast(_Entries, context.settings["parameters"])
    check_names(entries, by_name, source, f"{field}.parameters", why=NO_SUCH_PARAMETER)
    for name, entry in entries.items():
        place, parameter = f"{field}.parameters.{name}", by_name[name]
        if isinstance(entry, int):
            if parameter.numbers is None:
                why, allowed = "is a choice: all its values are on the grid", "a list of choices"
                raise InputError(source, place, why=why, found=entry, allowed=allowed)
            continue
        for index, value in enumerate(entry):
            if not parameter.contains(value):
                allowed = parameter.describe()
                raise InputError(source, f"{place}[{index}]", found=value, allowed=allowed)


KIND = SamplerKind(
    name="grid",
    summary="every combination of a few values for each parameter, in shuffled order",
    settings=(
        _POINTS,
        Setting(
            "parameters",
            {},
            "the same for single parameters, or the values themselves",
            f"a mapping; {_ENTRY_ALLOWED}",
            _read_entries,
        ),
    ),
    several_objectives=True,
    make=GridSampler,
    learns=False,
    listed=True,
    check=_check,
)
