"""The samplers by name, and the check of what a study file says of one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.setting import read_settings
from lsmtune.search import cmaes, forest, gp, grid, manual, optuna_samplers, random_, smac, sobol
from lsmtune.search.sampler import SamplerContext, SamplerKind

_KINDS = (
    optuna_samplers.TPE,
    forest.KIND,
    gp.KIND,
    cmaes.KIND,
    smac.KIND,
    optuna_samplers.NSGA2,
    optuna_samplers.NSGA3,
    random_.KIND,
    sobol.KIND,
    grid.KIND,
    manual.KIND,
)

SAMPLERS: Mapping[str, SamplerKind] = MappingProxyType({kind.name: kind for kind in _KINDS})


def sampler_kind(name: str, source: str, field: str) -> SamplerKind:
    """The sampler `name`. Raises `InputError` for an unknown one."""
    if name not in SAMPLERS:
        raise InputError(
            source,
            field,
            found=name,
            allowed=", ".join(SAMPLERS),
            nearest=nearest_name(name, SAMPLERS),
        )
    return SAMPLERS[name]


def check_settings(
    name: str, given: Mapping[str, object], source: str, field: str
) -> Mapping[str, object]:
    """The settings of the sampler `name`, read from `given` and completed by its defaults.

    `field` is the dotted place of the settings. Raises `InputError` for an unknown sampler, an
    unknown setting, and a value that is not allowed.
    """
    kind = sampler_kind(name, source, f"{field}.name")
    return read_settings(kind.settings, given, source, field)


def check_sampler(name: str, context: SamplerContext, source: str, field: str) -> None:
    """Whether the sampler `name` can search this space with these objectives.

    Raises `InputError` where it takes one objective only, or where a setting does not fit.
    """
    kind = sampler_kind(name, source, f"{field}.name")
    if len(context.directions) > 1 and not kind.several_objectives:
        able = ", ".join(other.name for other in SAMPLERS.values() if other.several_objectives)
        raise InputError(
            source,
            f"{field}.name",
            found=name,
            why="takes one objective only",
            allowed=f"with several objectives: {able}",
        )
    kind.check(context, source, field)
