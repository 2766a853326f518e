"""Each pruner: its settings, and the Optuna class underneath.

A *step* is what a trial reports its values by. For rungs in time it counts them from 1; for
rungs in size it is the size of the data in units of the smallest one (1, 10, 100), so that the
resources of successive halving and hyperband mean the same in both.

Defaults are Optuna's own, unless the setting says otherwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from optuna.exceptions import ExperimentalWarning
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    NopPruner,
    PatientPruner,
    PercentilePruner,
    SuccessiveHalvingPruner,
    WilcoxonPruner,
)

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.goal import Direction
from lsmtune.model.setting import (
    Setting,
    Settings,
    one_of,
    read_settings,
    real_setting,
    whole_number,
    whole_setting,
    word_or,
)

_AUTO = "auto"
_STEPS_MAX = 1_000_000


def no_check(settings: Settings, source: str, field: str) -> None:
    """The check of settings that are right each by itself."""


@dataclass(frozen=True)
class PrunerKind:
    """A pruner by name; `check` raises `InputError` for settings that contradict each other."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    make: Callable[[Settings], BasePruner]
    check: Callable[[Settings, str, str], None] = no_check


def _count(name: str, default: int, description: str, low: int = 0) -> Setting:
    return whole_setting(name, default, description, low, _STEPS_MAX)


def _auto_count(name: str, default: object, description: str) -> Setting:
    reader = word_or(_AUTO, whole_number(1, _STEPS_MAX))
    allowed = f"auto, or a whole number from 1 to {_STEPS_MAX}"
    return Setting(name, default, description, allowed, reader)


_BOOTSTRAP = _count("bootstrap_count", 0, "trials that must reach a rung before one ends there")
_QUANTILE_SETTINGS = (
    _count("startup_trials", 5, "trials that end by themselves before one is ended"),
    _count("warmup_steps", 0, "steps of each trial in which it is not judged"),
    _count("interval_steps", 1, "steps between two judgements", low=1),
    _count("min_trials", 1, "trials that must have reported at a step before one ends there", 1),
)


def _percentile_pruner(percentile: float, settings: Settings) -> BasePruner:
    return PercentilePruner(
        percentile,
        n_startup_trials=settings.whole("startup_trials"),
        n_warmup_steps=settings.whole("warmup_steps"),
        interval_steps=settings.whole("interval_steps"),
        n_min_trials=settings.whole("min_trials"),
    )


MEDIAN = PrunerKind(
    "median",
    "ends a trial whose best value so far is worse than the median of the others at that step",
    _QUANTILE_SETTINGS,
    # Optuna's MedianPruner is this with 50 per cent.
    lambda settings: _percentile_pruner(50.0, settings),
)


PERCENTILE = PrunerKind(
    "percentile",
    "keeps the trials whose best value so far is among the best per cent at that step",
    (
        # Optuna has no default; a quarter is what its examples keep.
        real_setting("percentile", 25.0, "per cent of the trials that go on", 0.0, 100.0),
        *_QUANTILE_SETTINGS,
    ),
    lambda settings: _percentile_pruner(settings.real("percentile"), settings),
)


def _resource(settings: Settings, name: str) -> int | str:
    return _AUTO if settings.values[name] == _AUTO else settings.whole(name)


def _successive_halving(settings: Settings) -> BasePruner:
    return SuccessiveHalvingPruner(
        min_resource=_resource(settings, "min_resource"),
        reduction_factor=settings.whole("reduction_factor"),
        min_early_stopping_rate=settings.whole("min_early_stopping_rate"),
        bootstrap_count=settings.whole("bootstrap_count"),
    )


def _check_bootstrap(settings: Settings, source: str, field: str) -> None:
    # Optuna refuses the pair with an error of its own.
    if settings.whole("bootstrap_count") and settings.values["min_resource"] == _AUTO:
        raise InputError(
            source,
            f"{field}.bootstrap_count",
            found=settings.whole("bootstrap_count"),
            allowed="0 while min_resource is auto",
        )


SUCCESSIVE_HALVING = PrunerKind(
    "successive-halving",
    "at each rung, one in `reduction_factor` trials goes on (ASHA)",
    (
        _auto_count("min_resource", _AUTO, "the step of the first rung; auto: from finished runs"),
        whole_setting("reduction_factor", 4, "how much each rung is longer", 2, 100),
        _count("min_early_stopping_rate", 0, "rungs left out at the beginning"),
        _BOOTSTRAP,
    ),
    _successive_halving,
    _check_bootstrap,
)


def _hyperband(settings: Settings) -> BasePruner:
    return HyperbandPruner(
        min_resource=settings.whole("min_resource"),
        max_resource=_resource(settings, "max_resource"),
        reduction_factor=settings.whole("reduction_factor"),
        bootstrap_count=settings.whole("bootstrap_count"),
    )


def _check_resources(settings: Settings, source: str, field: str) -> None:
    least, most = settings.whole("min_resource"), settings.values["max_resource"]
    if isinstance(most, int) and most < least:
        raise InputError(
            source,
            f"{field}.max_resource",
            found=most,
            allowed=f"at least min_resource ({least}), or auto",
        )
    if settings.whole("bootstrap_count") and most == _AUTO:
        raise InputError(
            source,
            f"{field}.bootstrap_count",
            found=settings.whole("bootstrap_count"),
            allowed="0 while max_resource is auto",
        )


HYPERBAND = PrunerKind(
    "hyperband",
    "successive halving in several brackets, from hasty to patient",
    (
        _count("min_resource", 1, "the step of the first rung of the hastiest bracket", 1),
        _auto_count("max_resource", _AUTO, "the last step of a trial; auto: from finished runs"),
        whole_setting("reduction_factor", 3, "how much each rung is longer", 2, 100),
        _BOOTSTRAP,
    ),
    _hyperband,
    _check_resources,
)


def _wilcoxon(settings: Settings) -> BasePruner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return WilcoxonPruner(
            p_threshold=settings.real("p_threshold"),
            n_startup_steps=settings.whole("startup_steps"),
        )


WILCOXON = PrunerKind(
    "wilcoxon",
    "ends a trial whose values, step by step, are worse than the best trial's (signed-rank test)",
    (
        real_setting(
            "p_threshold",
            0.1,
            "ends a trial below this p-value; greater ends more of them",
            0.0,
            1.0,
        ),
        _count("startup_steps", 2, "steps before the first judgement"),
    ),
    _wilcoxon,
)


NONE = PrunerKind("none", "every trial ends by itself", (), lambda _: NopPruner())

_WRAPPABLE = (NONE, MEDIAN, PERCENTILE, SUCCESSIVE_HALVING, WILCOXON)
_WRAPPABLE_NAMES = tuple(kind.name for kind in _WRAPPABLE)


def _patient(settings: Settings) -> BasePruner:
    wrapped = next(kind for kind in _WRAPPABLE if kind.name == settings.text("wrapped"))
    defaults = Settings({setting.name: setting.default for setting in wrapped.settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return PatientPruner(
            None if wrapped is NONE else wrapped.make(defaults),
            patience=settings.whole("patience"),
            min_delta=settings.real("min_delta"),
        )


PATIENT = PrunerKind(
    "patient",
    "ends a trial that has been worse than its own best for a while, if another pruner agrees",
    (
        Setting(
            "wrapped",
            "median",
            "the pruner that must agree, with its defaults; none: patience alone decides",
            ", ".join(_WRAPPABLE_NAMES),
            one_of(*_WRAPPABLE_NAMES),
        ),
        # Optuna has no default for the patience.
        _count("patience", 5, "steps for which a trial may be worse than its own best"),
        real_setting(
            "min_delta", 0.0, "by how much it may be worse at any time, in the metric's unit", 0.0
        ),
    ),
    _patient,
)


# --- by name

_KINDS = (
    NONE,
    MEDIAN,
    PERCENTILE,
    SUCCESSIVE_HALVING,
    HYPERBAND,
    WILCOXON,
    PATIENT,
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
    if len(directions) > 1 and kind is not NONE:
        raise InputError(
            source,
            f"{field}.name",
            found=name,
            why="judges by one objective",
            allowed=f"{NONE.name} with several objectives",
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
