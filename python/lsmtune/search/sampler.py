"""What a sampler is: a name, settings, and a way to make an Optuna sampler for a space.

A package outside lsmtune adds a sampler by an entry point, whose object is a `SamplerKind`:

    [project.entry-points."lsmtune.samplers"]
    annealing = "my_package.annealing:KIND"

What `SamplerKind.make` returns is an Optuna `BaseSampler` over the Optuna variables of a Space. It
has to be a pure function of (seed, history, trial number), so that a study goes on after a stop as
if it had never stopped: whatever is random follows from `generator_of_trial` or `seed_of_trial`. It
may cache what it can compute again. It is asked from one thread.

The Searcher calls, for each trial:

1. `before_trial(study, trial)`, once: begin the random stream of `trial.number` here.
2. `infer_relative_search_space(study, trial)`, then `sample_relative(study, trial, search_space)`,
   which returns values for the variables that it cares for, by name, as Optuna's distributions
   have them. Those that are not active in this trial are ignored; those that are missing come from
   `sample_independent(study, trial, param_name, param_distribution)`.
3. `sample_relative` again, when the configuration was tried before or breaks a constraint. A
   sampler goes on with its random stream, so as to propose something else; what is expensive is
   done once per trial. It may raise SpaceExhaustedError when it has no more.

`after_trial` is never called: what a sampler learns it learns from the history, which is all that
is left after a stop. It may set system attributes of its trial (`study._storage`, as Optuna's
samplers do; a study has no public way); they are stored with the trial.

`study.get_trials(deepcopy=False)` is the history, the trial that is asked for included (RUNNING,
without parameters). The states of the others mean:

| state | what it was |
|---|---|
| COMPLETE | has `values`; breaks a constraint where one of `trial.constraints` is above 0 |
| PRUNED | ended early because it looked bad; has `intermediate_values` |
| PRUNED with the constraint `FAILED` above 0 | crashed, hung, ran out of memory; no value counts |
| RUNNING | not judged yet; its `params` are known |
| FAIL | was put back: says nothing |

A finished trial may be judged anew later on: it was run again, or the machine turned out to have
been slow. Then its FrozenTrial is replaced by another object, and the sampler by a new one where
the end of a trial has changed: what a sampler caches is of one history. `noise_of` (in
`in_memory_study`) says how sure a value is; a sampler that does not ask takes it for what it is,
the mean of all runs.

`lsmtune.testing.samplers` holds every sampler to this, lsmtune's own and those of packages.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from statistics import NormalDist
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from lsmtune.errors import LsmtuneError
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction, WeightedWorkload
from lsmtune.model.setting import Setting
from lsmtune.model.workload import Workload
from lsmtune.space.space import Space

# The constraint that a failed trial breaks, beside those of the study; no expression has such a
# name. Samplers that know constraints thereby know failures.
FAILED = "<failed>"
# A trial's attribute: by how much, as a logarithm, the sampler expects it to better the best one.
PROMISE = "lsmtune:promise"


class SpaceExhaustedError(LsmtuneError):
    """There is no configuration left that was not tried: the search is over, not broken."""


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


@dataclass(frozen=True)
class AmplificationGuard:
    """The constraint `text`: write amplification is at most `most` times the baseline's."""

    text: str
    most: float


@dataclass(frozen=True)
class Problem:
    """What is known before a run: engine, workloads, and what every configuration has.

    `defaults` are the values of options that a configuration does not set. `memory_bytes` is what
    the store and the page cache may take together, `cores` the processors of the machine. `layout`
    names the parameters on which a loaded database depends; none where nothing is loaded once for
    several runs. `baseline` has the options of the configuration that a `guard` compares with.
    """

    engine: str
    workloads: Sequence[WeightedWorkload]
    defaults: Mapping[str, OptionValue]
    memory_bytes: float
    cores: int
    layout: frozenset[str] = frozenset()
    baseline: Mapping[str, OptionValue] = field(default_factory=dict)
    guard: AmplificationGuard | None = None

    @property
    def shares(self) -> list[tuple[Workload, float]]:
        """Each workload with its share of all weights."""
        whole = sum(each.weight for each in self.workloads)
        return [(each.workload, each.weight / whole) for each in self.workloads]


# Why a configuration must not run, or an empty text.
Accepts = Callable[[Mapping[str, OptionValue]], str]


@dataclass(frozen=True)
class SamplerContext:
    """What a sampler is made from.

    Attributes:
        space: What may vary; `space.distributions()` are its Optuna variables.
        seed: Of the study, from 0.
        settings: Complete and checked (see `check_settings`).
        directions: One per objective.
        problem: What is known of engine and workload; None where there is no engine.
        accepts: For samplers that rank. The Searcher asks it of every proposal, too, but draws at
            random after some that were refused. None where everything may run.
    """

    space: Space
    seed: int
    settings: Mapping[str, Any]
    directions: tuple[Direction, ...]
    problem: Problem | None = None
    accepts: Accepts | None = None


# --- A configuration, suggested variable by variable


@dataclass(frozen=True)
class Suggestion:
    """What a configuration consists of: Optuna's variables, and the options they stand for.

    Only what is active is in it, in the space's order of evaluation.
    """

    params: Mapping[str, Any]
    values: Mapping[str, OptionValue]


def suggest(space: Space, ask: Callable[[str, BaseDistribution], Any]) -> Suggestion:
    """The Suggestion for which `ask` is called once per active variable."""
    params: dict[str, Any] = {}

    def drawn(name: str) -> Any:
        distribution = space.distributions()[name]
        # There and back: numpy's types become Python's, an equal choice becomes the space's.
        internal = distribution.to_internal_repr(ask(name, distribution))
        params[name] = distribution.to_external_repr(internal)
        return params[name]

    return Suggestion(params, space.suggest(drawn))


def suggestion_of(space: Space, params: Mapping[str, Any]) -> Suggestion:
    """The Suggestion that takes every variable from `params`; `KeyError` for one not there."""
    return suggest(space, lambda name, _: params[name])


def proposed(
    sampler: BaseSampler, space: Space, study: Study, trial: FrozenTrial
) -> Iterator[Suggestion]:
    """What an Optuna sampler proposes for `trial`, one after another without end."""
    relative_space = sampler.infer_relative_search_space(study, trial)
    while True:
        relative = sampler.sample_relative(study, trial, relative_space)

        def ask(
            name: str, distribution: BaseDistribution, relative: dict[str, Any] = relative
        ) -> Any:
            if name in relative:
                return relative[name]
            return sampler.sample_independent(study, trial, name, distribution)

        yield suggest(space, ask)


# --- Samplers


class ProposingSampler(BaseSampler):
    """A sampler that proposes whole configurations, one after another, for each trial."""

    def __init__(self, context: SamplerContext) -> None:
        self.space = context.space
        self.seed = context.seed
        self.settings = context.settings
        self.rng = generator_of_trial(context.seed, 0)
        self._proposals: Iterator[dict[str, Any]] = iter(())

    @abstractmethod
    def proposals(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        """The active variables of one configuration after another for `trial`, without end.

        Each is to be tried when those before it were refused. `self.rng` is the random stream of
        the trial. What is expensive is best done once, before the first one is yielded.
        """

    def expected(self, study: Study) -> Mapping[int, NormalDist]:
        """What its model expects of trials that ended, by number: of logarithms, higher is better.

        Empty for a sampler that has none.
        """
        return {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin the random stream of the trial."""
        self.rng = generator_of_trial(self.seed, trial.number)
        self._proposals = self.proposals(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Every variable of the space."""
        return self.space.distributions()

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The active variables of the next proposal for the trial."""
        return next(self._proposals)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Never asked: a proposal has every active variable."""
        raise RuntimeError(f"trial {trial.number}: the proposal has no value for {param_name}")


@dataclass(frozen=True)
class SamplerKind:
    """A sampler by name.

    Attributes:
        name: As a study file has it; for an entry point, the entry point's name.
        summary: One clause, for lists.
        settings: What a study file may set of it.
        several_objectives: Whether it takes more than one.
        make: Makes the sampler. Called once, and again whenever the end of a trial changed.
        learns: Whether it takes results into account.
        listed: Whether it has a list of its own, at whose end it raises SpaceExhaustedError; the
            Searcher adds nothing to it.
        check: Called with (context, source, field) before `make`. Raises `InputError`, under the
            dotted `field` of `source`, for settings that do not fit the space.
        package: What it needs that not everybody installs, one of `errors.EXTRAS`; or empty. A
            study that was run can be read without it.
    """

    name: str
    summary: str
    settings: tuple[Setting, ...]
    several_objectives: bool
    make: Callable[[SamplerContext], BaseSampler]
    learns: bool = True
    listed: bool = False
    check: Callable[[SamplerContext, str, str], None] = lambda _context, _source, _field: None
    package: str = ""
