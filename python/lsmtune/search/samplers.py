"""The samplers by name: lsmtune's own and those of plugins; what a study file says of one."""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune import plugins
from lsmtune.errors import InputError, by_name, need_package
from lsmtune.model.setting import read_settings
from lsmtune.search import auto, cmaes, forest, gp, grid, optuna_samplers, plans
from lsmtune.search.sampler import SamplerContext

_BUILT_IN = (
    auto.KIND,
    optuna_samplers.TPE,
    forest.KIND,
    gp.KIND,
    cmaes.KIND,
    optuna_samplers.NSGA2,
    optuna_samplers.NSGA3,
    optuna_samplers.RANDOM,
    plans.SOBOL,
    grid.KIND,
    plans.MANUAL,
)

SAMPLERS = plugins.Plugins(plugins.SAMPLERS, {kind.name: kind for kind in _BUILT_IN})


def check_settings(
    name: str, given: Mapping[str, object], source: str, field: str
) -> Mapping[str, object]:
    """The settings of the sampler `name`, read from `given` and completed by its defaults.

    `field` is the dotted place of the settings. Raises `InputError` for an unknown sampler, an
    unknown setting, and a value that is not allowed.
    """
    kind = by_name(SAMPLERS, name, source, f"{field}.name")
    return read_settings(kind.settings, given, source, field)


def check_sampler(name: str, context: SamplerContext, source: str, field: str) -> None:
    """Whether the sampler `name` can search this space with these objectives.

    Raises `InputError` where it takes one objective only, or where a setting does not fit.
    """
    kind = by_name(SAMPLERS, name, source, f"{field}.name")
    if len(context.directions) > 1 and not kind.several_objectives:
        able = ", ".join(
            other.name for other in SAMPLERS.usable().values() if other.several_objectives
        )
        why, allowed = "takes one objective only", f"with several objectives: {able}"
        raise InputError(source, f"{field}.name", found=name, why=why, allowed=allowed)
    kind.check(context, source, field)


def check_installed(name: str, source: str, field: str) -> None:
    """Raises `InputError` where the sampler `name` needs a package that is not installed."""
    if package := SAMPLERS[name].package:
        need_package(package, source, f"{field}.name", found=name)
