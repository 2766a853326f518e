"""Samplers that follow a plan, a fixed sequence of configurations whatever the results.

`sobol` is a scrambled Sobol' sequence, which fills the space more evenly than random configurations
do; `manual` is a list. (`grid`, which makes its own list, is in `search.grid`.)

The index in the sequence is not the trial's number: a configuration that breaks a constraint uses
up an index and no trial, and a queued configuration uses up a trial and no index. Each trial has
its index as a system attribute, so that the next one is known after a stop. A plan with an end is
gone through from its beginning each time, as an earlier session may have had another: the Searcher
leaves out what was tried.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import InputError, check_names
from lsmtune.model.config import OptionValue
from lsmtune.model.setting import Domain, Setting
from lsmtune.search.sampler import (
    ProposingSampler,
    SamplerContext,
    SamplerKind,
    SpaceExhaustedError,
    seed_of_trial,
)
from lsmtune.search.unit_space import make_unit_space
from lsmtune.space.space import Space
from lsmtune.units import UnitError, option_value

_INDEX = "lsmtune:place"

Configs = tuple[Mapping[str, OptionValue], ...]


class PlanSampler(ProposingSampler):
    """Takes the plan in order; indices of trials that were put back come first.

    `ends`: whether the plan has a last configuration.
    """

    ends = False

    @abstractmethod
    def variables_at(self, index: int) -> dict[str, Any]:
        """Every active variable of configuration `index` of the plan, counted from 0.

        Raises SpaceExhaustedError when the plan has no such configuration.
        """

    def proposals(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        """The configurations at the indices that are free, each noted at the trial."""
        trials = study.get_trials(deepcopy=False)
        planned = [t for t in trials if t.number != trial.number and _INDEX in t.system_attrs]
        taken = {t.system_attrs[_INDEX] for t in planned if t.state != TrialState.FAIL}
        put_back = {t.system_attrs[_INDEX] for t in planned} - taken
        further = chain(sorted(put_back), count(max(taken | put_back, default=-1) + 1))
        for index in count() if self.ends else further:
            variables = self.variables_at(index)
            study._storage.set_trial_system_attr(trial._trial_id, _INDEX, index)
            yield variables


# --- sobol


class SobolSampler(PlanSampler):
    """Point `n` of the sequence over all variables; inactive ones use up their coordinate.

    The sequence is scipy's, with Matousek's linear scrambling and a digital shift, both by `seed`.
    """

    def __init__(self, context: SamplerContext) -> None:
        # Here, because scipy.stats takes half a second that every command would pay.
        from scipy.stats import qmc

        super().__init__(context)
        self._unit_space = make_unit_space(context.space)
        # One scrambling for the whole study: it is what makes the points one sequence.
        rng = np.random.default_rng(seed_of_trial(context.seed, 0))
        self._engine = qmc.Sobol(self._unit_space.dimension_count, scramble=True, rng=rng)

    def variables_at(self, index: int) -> dict[str, Any]:
        """The variables of point `index`."""
        self._engine.reset()
        if index:  # scipy takes 0 for an overflow
            self._engine.fast_forward(index)
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

    ends = True

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        configs: Configs = context.settings["configs"]
        self._configs = [context.space.variables_of(config) for config in configs]

    def variables_at(self, index: int) -> dict[str, Any]:
        """The variables of configuration `index` of the list."""
        if index >= len(self._configs):
            listed = len(self._configs)
            raise SpaceExhaustedError(f"each of the {listed} configurations of the list")
        return self._configs[index]


def _read_configs(value: object) -> Configs:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("not a list with at least one configuration")
    for index, config in enumerate(value):
        if not isinstance(config, Mapping) or not config:
            raise ValueError(f"[{index}] is not a mapping of option to value")
        for name, option in config.items():
            if not isinstance(name, str) or not isinstance(option, str | int | float | bool):
                raise ValueError(f"[{index}]: {name} has no value that an option can have")
    try:  # a size such as 4MiB is read here as everywhere else
        return tuple({n: option_value(option) for n, option in each.items()} for each in value)
    except UnitError as error:
        raise ValueError(str(error)) from None


def _check_configs(context: SamplerContext, source: str, field: str) -> None:
    configs: Configs = context.settings["configs"]
    if not configs:
        allowed = "a list of configurations"
        raise InputError(source, f"{field}.configs", why="is missing", allowed=allowed)
    for index, config in enumerate(configs):
        _check_config(context.space, config, source, f"{field}.configs[{index}]")


def _check_config(space: Space, config: Mapping[str, OptionValue], source: str, field: str) -> None:
    """Whether `config` lies in `space`; raises `InputError` for the first thing that is wrong."""
    for parameter in space.evaluation_order:
        name, dotted = parameter.name, f"{field}.{parameter.name}"
        if not parameter.is_active(config):
            if name in config:
                conditions = ", ".join(condition.name for condition in parameter.conditions)
                raise InputError(source, dotted, why=f"has no effect with this {conditions}")
        elif name not in config:
            raise InputError(source, dotted, why="is missing", allowed=parameter.describe())
        elif not parameter.contains(config[name]):
            raise InputError(source, dotted, found=config[name], allowed=parameter.describe())
    names = [parameter.name for parameter in space.parameters]
    check_names(config, names, source, field, why="no such parameter in space")


MANUAL = SamplerKind(
    name="manual",
    summary="a list of configurations, in its order",
    settings=(
        Setting(
            "configs",
            "the configurations, each with a value for every active parameter",
            (),
            Domain("a list of mappings of option to value", _read_configs),
        ),
    ),
    several_objectives=True,
    make=ManualSampler,
    learns=False,
    listed=True,
    check=_check_configs,
)
