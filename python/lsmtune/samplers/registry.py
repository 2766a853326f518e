"""The samplers, each a factory of a seed and a number of start-up trials."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType

from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from lsmtune.errors import InputError, nearest_name

SamplerFactory = Callable[[int, int | None], BaseSampler]

TPE_STARTUP_TRIALS = 10  # Optuna's own default


def _random(seed: int, startup_trials: int | None) -> BaseSampler:
    # Every trial of a random search is a start-up trial, so their number changes nothing.
    del startup_trials
    return RandomSampler(seed=seed)


def _tpe(seed: int, startup_trials: int | None) -> BaseSampler:
    with warnings.catch_warnings():
        # `group` is what lets the multivariate TPE learn parameters that are active only in some
        # trials; Optuna marks it experimental, and a changed meaning would fail our tests.
        warnings.simplefilter("ignore", ExperimentalWarning)
        return TPESampler(
            seed=seed,
            n_startup_trials=TPE_STARTUP_TRIALS if startup_trials is None else startup_trials,
            multivariate=True,
            group=True,
            constant_liar=True,
        )


SAMPLERS: Mapping[str, SamplerFactory] = MappingProxyType({"tpe": _tpe, "random": _random})


def make_sampler(name: str, seed: int, startup_trials: int | None = None) -> BaseSampler:
    """The sampler `name`; the same `seed` and history give the same suggestions.

    `startup_trials` is how many trials are drawn at random before the sampler learns; None takes
    the sampler's default. Raises `InputError` for an unknown name.
    """
    if name not in SAMPLERS:
        raise InputError(
            "sampler",
            "name",
            found=name,
            allowed=", ".join(SAMPLERS),
            nearest=nearest_name(name, SAMPLERS),
        )
    return SAMPLERS[name](seed, startup_trials)
