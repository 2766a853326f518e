"""The end of a search for lack of configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from optuna.samplers import BaseSampler

from lsmtune.errors import LsmtuneError
from lsmtune.model.goal import Direction
from lsmtune.model.setting import Setting, Settings
from lsmtune.space.space import Space


class SpaceExhaustedError(LsmtuneError):
    """There is no configuration left that was not tried: the search is over, not broken."""


# ----------
# The random stream of each trial: a function of the sampler's seed and the trial's number.


class Use(IntEnum):
    """What a random stream of a trial is for. The numbers are part of the derivation."""

    SAMPLER = 0
    SEARCHER = 1  # when the sampler has nothing new to propose
    GENERATION = 2  # of a genetic algorithm; its number takes the place of the trial's


def generator_of_trial(seed: int, number: int, use: Use = Use.SAMPLER) -> np.random.Generator:
    """A generator for trial `number`; neither argument is negative."""
    return np.random.default_rng(_sequence(seed, number, use))


def seed_of_trial(seed: int, number: int, use: Use = Use.SAMPLER) -> int:
    """A seed of 32 bits for trial `number`, for what takes no generator (Optuna's samplers)."""
    return int(_sequence(seed, number, use).generate_state(1, np.uint32)[0])


def _sequence(seed: int, number: int, use: Use) -> np.random.SeedSequence:
    """Numpy's hash of the three keeps the streams of neighbouring numbers apart."""
    return np.random.SeedSequence(seed, spawn_key=(int(use), number))


# ----------
# What a sampler is here: a name, settings, and a way to make it for a space.
#
# A sampler is an Optuna `BaseSampler` over the Optuna variables of a Space, and a pure function of
# (seed, history, trial number): whatever is drawn at random follows from the seed and the number of
# the trial (`search.sampler`), so that a study goes on after a stop as if it had never stopped. It
# may cache what it can compute again.
#
# The Searcher asks it so:
#
# 1. `before_trial(study, trial)`, once per trial: begin the random stream of `trial.number` here.
# 2. `infer_relative_search_space`, then `sample_relative`, which returns values for the variables
#    that it cares for; those that are not active in this trial are ignored, those that are missing
#    come from `sample_independent`.
# 3. Step 2 again, when the configuration was tried before or breaks a constraint. A sampler goes on
#    with its random stream, so as to propose something else; what is expensive is done once per
#    trial.
#
# `after_trial` is never called: what a sampler learns it learns from the history, which is all that
# is left after a stop. It may set system attributes of its trial (`study._storage`, as Optuna's
# samplers do); they are stored with the trial.
#
# What became of a trial may be seen in another light later on: it was run again, or the machine
# turned out to have been slow. Then its FrozenTrial is replaced by another object, and the sampler
# by a new one where the end of a trial has changed: what it caches is of one history.
# `mirror.noise_of` says how sure a value is; a sampler that does not ask takes it for what it is,
# the mean of all runs.
#
# `study.get_trials(deepcopy=False)` is the history, the trial that is asked for included (RUNNING,
# without parameters). The states of the others mean:
#
# | state | what it was |
# |---|---|
# | COMPLETE | has `values`; breaks a constraint where one of `trial.constraints` is above 0 |
# | PRUNED | ended early because it looked bad; has `intermediate_values` |
# | PRUNED with the constraint `FAILED` above 0 | crashed, hung, ran out of memory; no value counts
# | | RUNNING | not judged yet; its `params` are known | | FAIL | was put back: says nothing |

# The constraint that a failed trial breaks, beside those of the study; no expression has such a
# name. Samplers that know constraints thereby know failures.
FAILED = "<failed>"


@dataclass(frozen=True)
class SamplerContext:
    """What a sampler is made from; `settings` are complete and checked (see `check_settings`)."""

    space: Space
    seed: int
    settings: Mapping[str, object]
    directions: tuple[Direction, ...]

    @property
    def get(self) -> Settings:
        """The settings, typed: `context.get.whole("startup_trials")`."""
        return Settings(self.settings)


def no_check(context: SamplerContext, source: str, field: str) -> None:
    """The check of settings that do not depend on the space."""


@dataclass(frozen=True)
class SamplerKind:
    """A sampler by name.

    `check` raises `InputError` for settings that do not fit the space of `context`. A sampler that
    `learns` takes results into account. One that is `listed` has a list of its own and raises
    SpaceExhaustedError at its end; the Searcher adds nothing to it.
    """

    name: str
    summary: str
    settings: tuple[Setting, ...]
    several_objectives: bool
    make: Callable[[SamplerContext], BaseSampler]
    learns: bool = True
    listed: bool = False
    check: Callable[[SamplerContext, str, str], None] = no_check
