"""`random`: every configuration is drawn from the priors, whatever the results."""

from __future__ import annotations

from optuna.samplers import BaseSampler, RandomSampler

from lsmtune.search.optuna_samplers import PerTrialSampler
from lsmtune.search.sampler import SamplerContext, SamplerKind


def _make(context: SamplerContext) -> BaseSampler:
    # Priors, scales and the weights of special values are in the space's Optuna variables.
    return PerTrialSampler(lambda seed: RandomSampler(seed=seed), context.seed)


KIND = SamplerKind(
    name="random",
    summary="independent draws from the priors; the measure of what a search is worth",
    settings=(),
    several_objectives=True,
    make=_make,
    learns=False,
)
