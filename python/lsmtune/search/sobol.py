"""`sobol`: a scrambled Sobol' sequence, which fills the space more evenly than random draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from optuna.samplers import BaseSampler

from lsmtune.search.cube import make_cube
from lsmtune.search.plan import PlanSampler
from lsmtune.search.sampler import SamplerContext, SamplerKind, SpaceExhaustedError, seed_of_trial

_PLACES = 2**30  # how many points scipy's sequence has


class SobolSampler(PlanSampler):
    """Point `n` of the sequence over all variables; inactive ones use up their coordinate.

    The sequence is scipy's, with Matousek's linear scrambling and a digital shift, both by `seed`.
    """

    def __init__(self, context: SamplerContext) -> None:
        # Here, because scipy.stats takes half a second that every command would pay.
        from scipy.stats import qmc

        super().__init__(context.space)
        self._cube = make_cube(context.space)
        # One scrambling for the whole study: it is what makes the points one sequence.
        rng = np.random.default_rng(seed_of_trial(context.seed, 0))
        self._engine = qmc.Sobol(self._cube.dimensions, scramble=True, rng=rng)

    def variables_at(self, place: int) -> dict[str, Any]:
        """The variables of point `place`."""
        if place >= _PLACES:
            raise SpaceExhaustedError(f"each of the {_PLACES} points of the Sobol' sequence")
        if self._engine.num_generated > place:
            self._engine.reset()
        if self._engine.num_generated < place:  # scipy takes 0 for an overflow
            self._engine.fast_forward(place - self._engine.num_generated)
        return self._cube.decode(self._cube.complete(self._engine.random(1))[0])


def _make(context: SamplerContext) -> BaseSampler:
    return SobolSampler(context)


KIND = SamplerKind(
    name="sobol",
    summary="points that fill the space evenly, whatever the results",
    settings=(),
    several_objectives=True,
    make=_make,
    learns=False,
)
