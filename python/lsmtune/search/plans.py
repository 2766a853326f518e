"""Samplers that follow a plan, a fixed sequence of configurations whatever the results.

`sobol` is a scrambled Sobol' sequence, which fills the space more evenly than random configurations
do; `manual` is a list. (`grid`, which makes its own list, is in `search.grid`.)

The index in the sequence is not the trial's number: a configuration that breaks a constraint uses
up an index and no trial, and a queued configuration uses up a trial and no index. Each trial has
its index as a system attribute, so that the next one is known after a stop.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, cast

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.model.setting import Setting
from lsmtune.search.sampler import SamplerContext, SamplerKind, SpaceExhaustedError, seed_of_trial
from lsmtune.search.unit_space import make_unit_space
from lsmtune.space.space import Space
from lsmtune.units import option_value

_INDEX = "lsmtune:place"
_SOBOL_POINTS = 2**30  # how many scipy's sequence has

Configs = tuple[Mapping[str, OptionValue], ...]


class PlanSampler(BaseSampler):
    """Takes the plan in order; indices of trials that were put back come first."""

    def __init__(self, space: Space) -> None:
        self._distributions = space.distributions()
        self._indices: Iterator[int] = iter(())

    @abstractmethod
    def variables_at(self, index: int) -> dict[str, Any]:
        """Every active variable of configuration `index` of the plan, counted from 0.

        Raises SpaceExhaustedError when the plan has no such configuration.
        """

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Find the indices that are free."""
        self._indices = _free_indices(study.get_trials(deepcopy=False), trial.number)

    def infer_relative_search_space(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
    ) -> dict[str, BaseDistribution]:
        """Every variable of the space."""
        return self._distributions

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """The configuration at the next free index."""
        index = next(self._indices)
        variables = self.variables_at(index)
        study._storage.set_trial_system_attr(trial._trial_id, _INDEX, index)
        return variables

    def sample_independent(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,  # noqa: ARG002
    ) -> Any:
        """Never asked: the plan has every active variable."""
        raise RuntimeError(f"trial {trial.number}: the plan has no value for {param_name}")


def _free_indices(trials: list[FrozenTrial], number: int) -> Iterator[int]:
    planned = [t for t in trials if t.number != number and _INDEX in t.system_attrs]
    taken = {t.system_attrs[_INDEX] for t in planned if t.state != TrialState.FAIL}
    put_back = {t.system_attrs[_INDEX] for t in planned} - taken
    yield from sorted(put_back)
    yield from count(max(taken | put_back, default=-1) + 1)


# --- sobol


class SobolSampler(PlanSampler):
    """Point `n` of the sequence over all variables; inactive ones use up their coordinate.

    The sequence is scipy's, with Matousek's linear scrambling and a digital shift, both by `seed`.
    """

    def __init__(self, context: SamplerContext) -> None:
        # Here, because scipy.stats takes half a second that every command would pay.
        from scipy.stats import qmc

        super().__init__(context.space)
        self._unit_space = make_unit_space(context.space)
        # One scrambling for the whole study: it is what makes the points one sequence.
        rng = np.random.default_rng(seed_of_trial(context.seed, 0))
        self._engine = qmc.Sobol(self._unit_space.dimension_count, scramble=True, rng=rng)

    def variables_at(self, index: int) -> dict[str, Any]:
        """The variables of point `index`."""
        if index >= _SOBOL_POINTS:
            raise SpaceExhaustedError(f"each of the {_SOBOL_POINTS} points of the Sobol' sequence")
        if self._engine.num_generated > index:
            self._engine.reset()
        if self._engine.num_generated < index:  # scipy takes 0 for an overflow
            self._engine.fast_forward(index - self._engine.num_generated)
        point = self._unit_space.complete(self._engine.random(1))[0]
        return self._unit_space.decode(point)


SOBOL = SamplerKind(
    name="sobol",
    summary="points that fill the space evenly, whatever the results",
    settings=(),
    several_objectives=True,
    make=SobolSampler,
    learns=False,
)


# --- manual


class ManualSampler(PlanSampler):
    """The configurations in the order of the list."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context.space)
        self._configs = [context.space.variables_of(config) for config in _configs(context)]

    def variables_at(self, index: int) -> dict[str, Any]:
        """The variables of configuration `index` of the list."""
        if index >= len(self._configs):
            raise SpaceExhaustedError(
                f"each of the {len(self._configs)} configurations of the list"
            )
        return self._configs[index]


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


def _check_configs(context: SamplerContext, source: str, field: str) -> None:
    configs = _configs(context)
    if not configs:
        raise InputError(
            source, f"{field}.configs", why="is missing", allowed="a list of configurations"
        )
    for index, config in enumerate(configs):
        _check_config(context.space, config, source, f"{field}.configs[{index}]")


def _check_config(space: Space, config: Mapping[str, OptionValue], source: str, field: str) -> None:
    """Whether `config` lies in `space`; raises `InputError` for the first thing that is wrong."""
    active: dict[str, OptionValue] = {}
    for parameter in space.evaluation_order:
        dotted = f"{field}.{parameter.name}"
        if not all(condition.holds(active) for condition in parameter.conditions):
            if parameter.name in config:
                conditions = ", ".join(condition.name for condition in parameter.conditions)
                raise InputError(source, dotted, why=f"has no effect with this {conditions}")
            continue
        if parameter.name not in config:
            raise InputError(source, dotted, why="is missing", allowed=parameter.describe())
        value = config[parameter.name]
        if not parameter.contains(value):
            raise InputError(source, dotted, found=value, allowed=parameter.describe())
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


MANUAL = SamplerKind(
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
    make=ManualSampler,
    learns=False,
    listed=True,
    check=_check_configs,
)
