"""The samplers by name: lsmtune's own and those of entry points; what a study file says of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from optuna.samplers import BaseSampler

from lsmtune.errors import InputError, LsmtuneError, by_name
from lsmtune.model.setting import SAMPLER_NAMES, read_settings
from lsmtune.search import auto, cmaes, forest, gp, grid, optuna_samplers, plans
from lsmtune.search.sampler import SamplerContext, SamplerKind

ENTRY_POINTS = "lsmtune.samplers"

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


def collect_samplers(entries: Iterable[EntryPoint]) -> Mapping[str, SamplerKind]:
    """lsmtune's own samplers and those of `entries`, in the order in which they are listed.

    A sampler that cannot be used keeps its place, and says why when a study names it.
    """
    kinds = {kind.name: kind for kind in _BUILT_IN}
    for entry in entries:
        origin = f"{entry.value} of the package {entry.dist.name if entry.dist else 'unknown'}"
        why = ""
        if entry.name in kinds:
            why = f"is the name of two samplers; uninstall one, {origin}"
        else:
            try:
                kind = entry.load()
                if not isinstance(kind, SamplerKind) or kind.name != entry.name:
                    why = f"is no SamplerKind of this name in {origin}"
            except Exception as error:  # whatever somebody else's package does when it is imported
                problem = f"cannot be loaded from {origin}: {type(error).__name__}: {error}"
                why = " ".join(problem.split())
        kinds[entry.name] = _unusable(entry.name, why) if why else kind
    for name in SAMPLER_NAMES:
        if name not in kinds:
            # An editable install keeps the entry points that it had when it was made.
            why = f"is not among the entry points {ENTRY_POINTS}: install lsmtune again"
            kinds[name] = _unusable(name, why)
    added = sorted(kinds.keys() - set(SAMPLER_NAMES))
    return MappingProxyType({name: kinds[name] for name in (*SAMPLER_NAMES, *added)})


def _unusable(name: str, why: str) -> SamplerKind:
    def make(_: SamplerContext) -> BaseSampler:
        raise LsmtuneError(f"the sampler {name} {why}")

    return SamplerKind(name, why, (), several_objectives=True, make=make, unusable=why)


SAMPLERS: Mapping[str, SamplerKind] = collect_samplers(entry_points(group=ENTRY_POINTS))


def sampler_kind(name: str, source: str, field: str) -> SamplerKind:
    """The sampler `name`. Raises `InputError` for an unknown one, and one that cannot be used."""
    kind = by_name(SAMPLERS, name, source, field)
    if kind.unusable:
        raise InputError(source, field, found=name, why=kind.unusable)
    return kind


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
        why, allowed = "takes one objective only", f"with several objectives: {able}"
        raise InputError(source, f"{field}.name", found=name, why=why, allowed=allowed)
    kind.check(context, source, field)
