"""`nsga2` and `nsga3`: Optuna's genetic algorithms, for several objectives above all.

Each trial carries its generation as a system attribute. Who the parents of a generation are follows
from the trials of the one before; it is worked out anew in each session, with a random stream that
belongs to the generation, not to the trial that happens to need it first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, NSGAIIISampler, NSGAIISampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from lsmtune.records.setting import Setting, real_number, whole_number
from lsmtune.samplers.kind import SamplerContext, SamplerKind
from lsmtune.samplers.per_trial import PerTrialSampler
from lsmtune.samplers.seeds import Use, seed_of_trial

_Genetic = NSGAIISampler | NSGAIIISampler
_MakeGenetic = Callable[[int], _Genetic]


class GeneticSampler(PerTrialSampler):
    """A genetic sampler made anew for each trial and for each generation's selection."""

    def __init__(self, make: _MakeGenetic, seed: int) -> None:
        super().__init__(make, seed)
        self._make_genetic = make
        self._selected = 0

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Give the trial its generation, a queued one too, and make sure that it has parents."""
        super().before_trial(study, trial)
        generation = self._make_genetic(0).get_trial_generation(study, trial)
        # From the first generation on, one by one: Optuna asks for each one's parents in turn, and
        # would meet the limit of Python's stack in a long study.
        for number in range(self._selected + 1, generation + 1):
            seed = seed_of_trial(self._seed, number, Use.GENERATION)
            self._make_genetic(seed).get_parent_population(study, number)
        self._selected = max(self._selected, generation)


def _maker(kind: type[NSGAIISampler] | type[NSGAIIISampler]) -> Callable[..., BaseSampler]:
    def make(context: SamplerContext) -> BaseSampler:
        get = context.get

        def make_genetic(seed: int) -> _Genetic:
            with warnings.catch_warnings():
                # Optuna has called NSGA-III experimental since 2023.
                warnings.simplefilter("ignore", ExperimentalWarning)
                return kind(
                    seed=seed,
                    population_size=get.whole("population"),
                    crossover_prob=get.real("crossover_probability"),
                )

        return GeneticSampler(make_genetic, context.seed)

    return make


_SETTINGS = (
    # Optuna's default of 50 would leave most studies of a storage engine in their first generation,
    # which is drawn at random.
    Setting(
        "population",
        20,
        "trials of a generation; the first one is drawn at random",
        "a whole number from 2 to 10000",
        whole_number(2, 10_000),
    ),
    Setting(
        "crossover_probability",
        0.9,
        "share of the trials that have two parents",
        "a number from 0 to 1",
        real_number(0.0, 1.0),
    ),
)

NSGA2 = SamplerKind(
    name="nsga2",
    summary="genetic algorithm that keeps the front of several objectives spread out",
    settings=_SETTINGS,
    several_objectives=True,
    make=_maker(NSGAIISampler),
)
NSGA3 = SamplerKind(
    name="nsga3",
    summary="as nsga2, for three objectives and more (by reference points)",
    settings=_SETTINGS,
    several_objectives=True,
    make=_maker(NSGAIIISampler),
)
