"""`manual`: the configurations of a list, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from optuna.samplers import BaseSampler

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.model.setting import Setting
from lsmtune.search.plan import PlanSampler
from lsmtune.search.sampler import SamplerContext, SamplerKind, SpaceExhaustedError
from lsmtune.space.space import Space
from lsmtune.units import option_value

Configs = tuple[Mapping[str, OptionValue], ...]


class ManualSampler(PlanSampler):
    """The configurations in the order of the list."""

    def __init__(self, space: Space, configs: Configs) -> None:
        super().__init__(space)
        self._configs = [space.variables_of(config) for config in configs]

    def variables_at(self, place: int) -> dict[str, Any]:
        """The variables of configuration `place` of the list."""
        if place >= len(self._configs):
            raise SpaceExhaustedError(
                f"each of the {len(self._configs)} configurations of the list"
            )
        return self._configs[place]


def _read_configs(value: object) -> Configs:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("not a list with at least one configuration")
    return tuple(_read_config(config, index) for index, config in enumerate(value))


def _read_config(config: object, index: int) -> Mapping[str, OptionValue]:
    if not isinstance(config, Mapping) or not config:
        raise ValueError(f"[{index}] is not a mapping of option to value")
    for name, value in config.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise ValueError(f"[{index}]: {name} has no value that an option can have")
    # A size such as 4MiB is read here as everywhere else.
    return {name: option_value(value) for name, value in config.items()}


def _configs(context: SamplerContext) -> Configs:
    return cast(Configs, context.settings["configs"])


def _check(context: SamplerContext, source: str, field: str) -> None:
    configs = _configs(context)
    if not configs:
        raise InputError(
            source, f"{field}.configs", why="is missing", allowed="a list of configurations"
        )
    for index, config in enumerate(configs):
        check_config(context.space, config, source, f"{field}.configs[{index}]")


def check_config(space: Space, config: Mapping[str, OptionValue], source: str, field: str) -> None:
    """Whether `config` lies in `space`; raises `InputError` for the first thing that is wrong."""
    active: dict[str, OptionValue] = {}
    for parameter in space.evaluation_order:
        place = f"{field}.{parameter.name}"
        if not all(condition.holds(active) for condition in parameter.conditions):
            if parameter.name in config:
                conditions = ", ".join(condition.name for condition in parameter.conditions)
                raise InputError(source, place, why=f"has no effect with this {conditions}")
            continue
        if parameter.name not in config:
            raise InputError(source, place, why="is missing", allowed=parameter.describe())
        value = config[parameter.name]
        if not parameter.contains(value):
            raise InputError(source, place, found=value, allowed=parameter.describe())
        active[parameter.name] = value
    names = [parameter.name for parameter in space.parameters]
    for name in config:
        if name not in names:
            raise InputError(
                source,
                f"{field}.{name}",
                why="no such parameter in space",
                allowed=", ".join(names),
                nearest=nearest_name(name, names),
            )


def _make(context: SamplerContext) -> BaseSampler:
    return ManualSampler(context.space, _configs(context))


KIND = SamplerKind(
    name="manual",
    summary="a list of configurations, in its order",
    settings=(
        Setting(
            "configs",
            (),
            "the configurations, each with a value for every active parameter",
            "a list of mappings of option to value",
            _read_configs,
        ),
    ),
    several_objectives=True,
    make=_make,
    learns=False,
    listed=True,
    check=_check,
)
