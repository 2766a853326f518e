"""A Suggestion: one configuration, suggested variable by variable as Optuna's trials do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import BaseTrial, FrozenTrial

from lsmtune.model.config import OptionValue
from lsmtune.space.space import Space

Ask = Callable[[str, BaseDistribution], Any]


class AskingTrial:
    """Stands where a space expects a trial: asks for each variable once, and keeps the answers.

    `params` are the values of the variables asked for so far, in that order. Spaces call no more of
    a trial than its three methods.
    """

    def __init__(self, known: Mapping[str, BaseDistribution], ask: Ask) -> None:
        """`known` has the distribution of every variable."""
        self.params: dict[str, Any] = {}
        self._known = known
        self._ask = ask

    def suggest_float(self, name: str, *_: object, **__: object) -> float:
        """See `optuna.trial.BaseTrial`."""
        return float(self._suggest(name))

    def suggest_int(self, name: str, *_: object, **__: object) -> int:
        """See `optuna.trial.BaseTrial`."""
        return int(self._suggest(name))

    def suggest_categorical(self, name: str, *_: object) -> Any:
        """See `optuna.trial.BaseTrial`."""
        return self._suggest(name)

    def _suggest(self, name: str) -> Any:
        if name not in self.params:
            distribution = self._known[name]
            # There and back: numpy's types become Python's, an equal choice becomes the space's.
            internal = distribution.to_internal_repr(self._ask(name, distribution))
            self.params[name] = distribution.to_external_repr(internal)
        return self.params[name]


@dataclass(frozen=True)
class Suggestion:
    """What a configuration consists of: Optuna's variables, and the options they stand for.

    Only what is active is in it, in the space's order of evaluation.
    """

    params: Mapping[str, Any]
    values: Mapping[str, OptionValue]


def suggest(space: Space, known: Mapping[str, BaseDistribution], ask: Ask) -> Suggestion:
    """The Suggestion for which `ask` is called once per active variable.

    `known` is `space.distributions()`, which takes time to make.
    """
    trial = AskingTrial(known, ask)
    values = space.suggest(cast(BaseTrial, trial))
    return Suggestion(trial.params, values)


def suggestion_of(
    space: Space, known: Mapping[str, BaseDistribution], params: Mapping[str, Any]
) -> Suggestion:
    """The Suggestion that takes every variable from `params`; `KeyError` for one not there."""
    return suggest(space, known, lambda name, _: params[name])


def proposed(
    sampler: BaseSampler,
    space: Space,
    known: Mapping[str, BaseDistribution],
    study: Study,
    trial: FrozenTrial,
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

        yield suggest(space, known, ask)
