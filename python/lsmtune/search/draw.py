"""A Draw: one configuration in the making, variable by variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from optuna.distributions import BaseDistribution
from optuna.trial import BaseTrial

from lsmtune.model.config import OptionValue
from lsmtune.space.space import Space

Ask = Callable[[str, BaseDistribution], Any]


class Asker:
    """Stands where a space expects a trial: asks for each variable once, and keeps the answers.

    `params` and `distributions` are the variables asked for so far, in that order.
    """

    def __init__(self, known: Mapping[str, BaseDistribution], ask: Ask) -> None:
        """`known` has the distribution of every variable."""
        self.params: dict[str, Any] = {}
        self.distributions: dict[str, BaseDistribution] = {}
        self._known = known
        self._ask = ask

    def as_trial(self) -> BaseTrial:
        """Itself: spaces call no more of a trial than the three methods below."""
        return cast(BaseTrial, self)

    def suggest_float(self, name: str, low: float, high: float, **_: object) -> float:
        """See `optuna.trial.BaseTrial`."""
        del low, high
        return float(self._take(name))

    def suggest_int(self, name: str, low: int, high: int, **_: object) -> int:
        """See `optuna.trial.BaseTrial`."""
        del low, high
        return int(self._take(name))

    def suggest_categorical(self, name: str, choices: object) -> Any:
        """See `optuna.trial.BaseTrial`."""
        del choices
        return self._take(name)

    def _take(self, name: str) -> Any:
        if name not in self.params:
            distribution = self._known[name]
            # There and back: numpy's types become Python's, an equal choice becomes the space's.
            internal = distribution.to_internal_repr(self._ask(name, distribution))
            self.params[name] = distribution.to_external_repr(internal)
            self.distributions[name] = distribution
        return self.params[name]


@dataclass(frozen=True)
class Draw:
    """What a configuration consists of: Optuna's variables, and the options they stand for.

    Only what is active is in it, in the space's order of evaluation.
    """

    params: Mapping[str, Any]
    distributions: Mapping[str, BaseDistribution]
    values: Mapping[str, OptionValue]


def make_draw(space: Space, known: Mapping[str, BaseDistribution], ask: Ask) -> Draw:
    """A Draw for which `ask` is called once per active variable.

    `known` is `space.distributions()`, which takes time to make.
    """
    asker = Asker(known, ask)
    values = space.suggest(asker.as_trial())
    return Draw(asker.params, asker.distributions, values)


def draw_of(space: Space, known: Mapping[str, BaseDistribution], params: Mapping[str, Any]) -> Draw:
    """The Draw that takes every variable from `params`; `KeyError` for one that is missing."""
    return make_draw(space, known, lambda name, _: params[name])
