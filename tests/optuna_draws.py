"""Trials of Optuna's own, for spaces and parameters to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optuna.trial import FixedTrial, Trial

from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space


def draws(of: Space | Parameter, trial: Trial | FixedTrial) -> Callable[[str], Any]:
    """What `suggest` asks for, as `trial` draws it and notes it."""
    distributions = of.distributions()
    return lambda name: trial._suggest(name, distributions[name])
