"""The pruners by name, and the check of what a study file says of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from optuna.pruners import BasePruner

from lsmtune.errors import InputError, nearest_name
from lsmtune.pruners import kinds
from lsmtune.pruners.kinds import PrunerKind
from lsmtune.records.objective import Direction
from lsmtune.records.setting import Settings, read_settings

__all__ = ["PRUNERS", "PrunerKind", "check_pruner", "check_settings", "make_pruner"]

_KINDS = (
    kinds.NONE,
    kinds.MEDIAN,
    kinds.PERCENTILE,
    kinds.SUCCESSIVE_HALVING,
    kinds.HYPERBAND,
    kinds.WILCOXON,
    kinds.PATIENT,
)

PRUNERS: Mapping[str, PrunerKind] = MappingProxyType({kind.name: kind for kind in _KINDS})


def check_settings(
    name: str, given: Mapping[str, object], source: str, field: str
) -> Mapping[str, object]:
    """The settings of the pruner `name`, read from `given` and completed by its defaults.

    `field` is the dotted place of the settings. Raises `InputError` for an unknown pruner, an
    unknown setting, a value that is not allowed, and values that contradict each other.
    """
    kind = _kind(name, source, f"{field}.name")
    settings = read_settings(kind.settings, given, source, field)
    kind.check(Settings(settings), source, field)
    return settings


def check_pruner(name: str, directions: Sequence[Direction], source: str, field: str) -> None:
    """Whether the pruner `name` can judge trials of these objectives.

    Raises `InputError` where there are several: a trial then has no one value by which it could be
    called bad.
    """
    kind = _kind(name, source, f"{field}.name")
    if len(directions) > 1 and kind is not kinds.NONE:
        raise InputError(
            source,
            f"{field}.name",
            found=name,
            why="judges by one objective",
            allowed=f"{kinds.NONE.name} with several objectives",
        )


def make_pruner(
    name: str, settings: Mapping[str, object], directions: Sequence[Direction]
) -> BasePruner:
    """The pruner `name`; `settings` as `check_settings` returns them.

    Raises `InputError` as `check_pruner` does. Pruners look at the direction of the study that
    they are given.
    """
    check_pruner(name, directions, "pruner", "pruner")
    return PRUNERS[name].make(Settings(settings))


def _kind(name: str, source: str, field: str) -> PrunerKind:
    if name not in PRUNERS:
        raise InputError(
            source,
            field,
            found=name,
            allowed=", ".join(PRUNERS),
            nearest=nearest_name(name, PRUNERS),
        )
    return PRUNERS[name]
