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
from functools import partial

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
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune import plugins
from lsmtune.errors import InputError, by_name
from lsmtune.model.goal import Direction
from lsmtune.model.setting import AUTO, Setting, one_of, read_settings, real, whole

_STEPS_MAX = 1_000_000


@dataclass(frozen=True)
class PrunerKind:
    """A pruner by name; `make` takes its settings, which `check_settings` completed, by name.

    `plain_rates`: it looks at the rate within a run as it is, without the compactions that are due,
    and at nothing else. A package adds a pruner by an entry point `lsmtune.pruners` (see
    `lsmtune.plugins`).
    """

    name: str
    summary: str
    settings: tuple[Setting, ...]
    make: Callable[..., BasePruner]
    plain_rates: bool = False


def _count(name: str, description: str, default: int | str, low: int = 0) -> Setting:
    domain = whole(low, _STEPS_MAX, auto=default == AUTO)
    return Setting(name, description, default, domain)


_BOOTSTRAP = _count("bootstrap_count", "trials that must reach a rung before one ends there", 0)
_QUANTILE_SETTINGS = (
    _count("startup_trials", "trials that end by themselves before one is ended", 5),
    _count("warmup_steps", "steps of each trial in which it is not judged", 0),
    _count("interval_steps", "steps between two judgements", 1, low=1),
    _count("min_trials", "trials that must have reported at a step before one ends there", 1, 1),
)


def _make_percentile(
    startup_trials: int, warmup_steps: int, interval_steps: int, min_trials: int, percentile: float
) -> BasePruner:
    return PercentilePruner(
        percentile,
        n_startup_trials=startup_trials,
        n_warmup_steps=warmup_steps,
        interval_steps=interval_steps,
        n_min_trials=min_trials,
    )


class _ByFirstTrial(BasePruner):
    """Successive halving or hyperband whose `auto` is what the first trial that ended well says.

    Optuna's own take the longest of those that had ended when they first judged, and keep it: after
    a stop these are more trials, and the pruner is another one.
    """

    def __init__(self, make: Callable[..., BasePruner], settings: Mapping[str, int | str]) -> None:
        self._make, self._settings = make, settings

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """See `BasePruner`; before such a trial nothing is ended."""
        ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        last = next((t.last_step for t in ended if t.last_step is not None), None)
        if last is None:
            return False
        # As Optuna has them.
        auto = {"min_resource": max(last // 100, 1), "max_resource": last + 1}
        known = {n: auto[n] if value == AUTO else value for n, value in self._settings.items()}
        return self._make(**known).prune(study, trial)


def _make_halving(make: Callable[..., BasePruner], **settings: int | str) -> BasePruner:
    return _ByFirstTrial(make, settings) if AUTO in settings.values() else make(**settings)


class _QuietWilcoxon(WilcoxonPruner):
    """Optuna's, which warns where the best trial has fewer steps: the fastest run passes fewest."""

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """See `BasePruner`."""
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return super().prune(study, trial)


def _make_wilcoxon(*, p_threshold: float, startup_steps: int) -> BasePruner:
    with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
        return _QuietWilcoxon(p_threshold=p_threshold, n_startup_steps=startup_steps)


def _make_patient(*, wrapped: str, patience: int, min_delta: float) -> BasePruner:
    inner = PRUNERS[wrapped]
    defaults = {setting.name: setting.default for setting in inner.settings}
    with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
        pruner = None if inner is NONE else inner.make(**defaults)
        return PatientPruner(pruner, patience=patience, min_delta=min_delta)


class FarBehindPruner(BasePruner):
    """Ends a trial below `ratio` times the lowest that the best trial was at.

    The first `warmup` of the best trial's steps do not count, on either side: caches are filling,
    and nothing was compacted. What a trial comes to last counts on the best one's side.

    On recorded landscapes of RocksDB, with the default, a middling or the best configuration as the
    best trial, the defaults end no run that comes to 0.8 of it or more, of 1,224, and save 8 to 76
    % of the time of random configurations (docs/benchmarks/README.md).
    """

    def __init__(self, *, ratio: float, warmup: float) -> None:
        self._ratio = ratio
        self._warmup = warmup

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """See `BasePruner`; where not all values have the same sign there is no ratio."""
        step = trial.last_step
        try:
            best = study.best_trial
        except ValueError:
            return False  # no trial has ended well so far
        steps = best.intermediate_values
        first = self._warmup * (best.last_step or 0)
        if step is None or step < first:
            return False
        sign = 1.0 if study.direction is StudyDirection.MAXIMIZE else -1.0
        value: float = sign * trial.intermediate_values[step]
        compared = [best.values[0], *(value for at, value in steps.items() if at >= first)]
        rates: list[float] = [sign * each for each in compared]
        if min(rates) > 0.0 and value >= 0.0:  # a rate of 0 is far behind any other
            return value < self._ratio * min(rates)
        # Costs: what is twice as much is half as good.
        return max(value, *rates) < 0.0 and self._ratio * value < min(rates)


NONE = PrunerKind("none", "every trial ends by itself", (), NopPruner)
# What the sampler `auto` comes with.
FAR_BEHIND = PrunerKind(
    "far-behind",
    "ends a run at less than `ratio` of the rate that the best trial had at its slowest",
    (
        Setting("ratio", "share of the best trial's slowest rate", 0.5, real(0, 1)),
        Setting("warmup", "share of the best trial's time that does not count", 0.25, real(0, 1)),
    ),
    FarBehindPruner,
    plain_rates=True,
)
_KINDS = (
    NONE,
    FAR_BEHIND,
    PrunerKind(
        "median",
        "ends a trial whose best value so far is worse than the median of the others at that step",
        _QUANTILE_SETTINGS,
        partial(_make_percentile, percentile=50.0),  # as Optuna's MedianPruner
    ),
    PrunerKind(
        "percentile",
        "keeps the trials whose best value so far is among the best per cent at that step",
        (
            # Optuna has no default; a quarter is what its examples keep.
            Setting("percentile", "per cent of the trials that go on", 25.0, real(0, 100)),
            *_QUANTILE_SETTINGS,
        ),
        _make_percentile,
    ),
    PrunerKind(
        "successive-halving",
        "at each rung, one in `reduction_factor` trials goes on (ASHA)",
        (
            _count("min_resource", "the step of the first rung; auto: from the first run", AUTO, 1),
            Setting("reduction_factor", "how much each rung is longer", 4, whole(2, 100)),
            _count("min_early_stopping_rate", "rungs left out at the beginning", 0),
            _BOOTSTRAP,
        ),
        partial(_make_halving, SuccessiveHalvingPruner),
    ),
    PrunerKind(
        "hyperband",
        "successive halving in several brackets, from hasty to patient",
        (
            _count("min_resource", "the step of the first rung of the hastiest bracket", 1, 1),
            _count("max_resource", "the last step of a trial; auto: from the first run", AUTO, 1),
            Setting("reduction_factor", "how much each rung is longer", 3, whole(2, 100)),
            _BOOTSTRAP,
        ),
        partial(_make_halving, HyperbandPruner),
    ),
    PrunerKind(
        "wilcoxon",
        "ends a trial whose values, step by step, are worse than the best trial's "
        "(signed-rank test)",
        (
            Setting(
                "p_threshold",
                "ends a trial below this p-value; greater ends more of them",
                0.1,
                real(0, 1),
            ),
            _count("startup_steps", "steps before the first judgement", 2),
        ),
        _make_wilcoxon,
    ),
    PrunerKind(
        "patient",
        "ends a trial that has been worse than its own best for a while, if another pruner agrees",
        (
            Setting(
                "wrapped",
                "the pruner that must agree, with its defaults; none: patience alone decides",
                "median",
                one_of("none", "median", "percentile", "successive-halving", "wilcoxon"),
            ),
            # Optuna has no default for the patience.
            _count("patience", "steps for which a trial may be worse than its own best", 5),
            Setting(
                "min_delta",
                "by how much it may be worse at any time, in the metric's unit",
                0.0,
                real(0),
            ),
        ),
        _make_patient,
    ),
)

PRUNERS = plugins.Plugins(plugins.PRUNERS, {kind.name: kind for kind in _KINDS})


def check_settings(
    name: str, given: Mapping[str, object], source: str, field: str
) -> Mapping[str, object]:
    """The settings of the pruner `name`, read from `given` and completed by its defaults.

    `field` is the dotted place of the settings. Raises `InputError` for an unknown pruner, an
    unknown setting, a value that is not allowed, and values that contradict each other.
    """
    kind = by_name(PRUNERS, name, source, f"{field}.name")
    settings = read_settings(kind.settings, given, source, field)
    least, most = settings.get("min_resource"), settings.get("max_resource")
    if isinstance(least, int) and isinstance(most, int) and most < least:
        allowed = f"at least min_resource ({least}), or auto"
        raise InputError(source, f"{field}.max_resource", found=most, allowed=allowed)
    bootstrap = settings.get("bootstrap_count")
    for resource in ("min_resource", "max_resource"):
        if bootstrap and settings.get(resource) == AUTO:
            # Optuna refuses the pair with an error of its own.
            allowed = f"0 while {resource} is auto"
            raise InputError(source, f"{field}.bootstrap_count", found=bootstrap, allowed=allowed)
    return settings


def check_pruner(name: str, directions: Sequence[Direction], source: str, field: str) -> None:
    """Whether the pruner `name` can judge trials of these objectives.

    Raises `InputError` where there are several: a trial then has no one value by which it could be
    called bad.
    """
    place = f"{field}.name"
    if by_name(PRUNERS, name, source, place) is not NONE and len(directions) > 1:
        allowed = f"{NONE.name} with several objectives"
        raise InputError(source, place, found=name, why="judges by one objective", allowed=allowed)
